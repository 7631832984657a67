"""The broker's entrances: one for each listener that is not PLAINTEXT."""

from __future__ import annotations

import logging
from collections.abc import Callable

from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.config.listeners import PLAINTEXT
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.values import ConfigError
from urteil.broker.net.listener_security import Entrance
from urteil.broker.security.scram_users import ScramUsers

log = logging.getLogger("security")


class Security:
    """Follows the dynamic configuration: keys and certificates are replaced without a restart."""

    def __init__(
        self, config: BrokerConfig, users: ScramUsers, now_ms: Callable[[], float]
    ) -> None:
        self._properties = config.properties
        self.entrances = {
            one.name: Entrance(
                one,
                is_inter_broker=one.name == config.inter_broker_listener,
                find=users.of,
                now_ms=now_ms,
            )
            for one in config.listeners
            if one.protocol != PLAINTEXT
        }

    def reload(self) -> None:
        """Take on what settings and files say now. Raises ConfigError."""
        for one in self.entrances.values():
            one.reload(self._properties)

    def check(self, properties: LiveProperties) -> None:
        """Whether they could be taken on. Raises ConfigError."""
        for one in self.entrances.values():
            one.check(properties)

    def take_on(self) -> None:
        """As `reload`; what cannot be is told in the log, and what stands stays."""
        try:
            self.reload()
        except ConfigError as error:
            log.error("%s", error)
