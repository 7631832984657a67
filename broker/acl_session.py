"""The ZooKeeper session for ACLs: the broker's own, or another if `authorizer.zookeeper.*` is
set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from urteil.broker.config.values import ConfigError
from urteil.broker.zookeeper.session import Session

if TYPE_CHECKING:
    from urteil.broker.config.broker_config import BrokerConfig
    from urteil.broker.environment import Environment

_URL, _SESSION, _CONNECTION = (
    f"authorizer.zookeeper.{setting}"
    for setting in ("url", "session.timeout.ms", "connection.timeout.ms")
)


class AclSession:
    """`zk` is usable after `connect`. The broker's own session is connected before."""

    def __init__(
        self,
        config: BrokerConfig,
        own: Session,
        environment: Environment,
        resolve: Callable[[str], str],
    ) -> None:
        """Raises ConfigError."""
        properties, timeout_ms = config.properties, config.zookeeper_session_timeout_ms
        self.zk, self._is_own = own, not {_URL, _SESSION, _CONNECTION} & properties.keys()
        self._timeout_s = _time_ms(properties, _CONNECTION, config.zookeeper_patience_ms) / 1000
        if not self._is_own:
            connect = properties.get(_URL, config.zookeeper_connect)
            self.zk = environment.session(
                connect, _time_ms(properties, _SESSION, timeout_ms), resolve
            )

    async def connect(self) -> None:
        """Raises TimeoutError."""
        if not self._is_own:
            await self.zk.connect(self._timeout_s)

    async def close(self) -> None:
        if not self._is_own:
            await self.zk.close()


def _time_ms(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: Not a number of type INT"
        ) from None
