"""Settings of topics and brokers in `/config/<kind>/<entity>`, changes by `/config/changes`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.change_notifications import ChangeNotifications
from urteil.broker.zookeeper.plain_writes import put
from urteil.broker.zookeeper.session import NoNodeError, Session

log = logging.getLogger("configs")

TOPICS, BROKERS, USERS = "topics", "brokers", "users"
CLIENTS, IPS = "clients", "ips"
EVERY_BROKER = "<default>"

Callback = Callable[[str, dict[str, str]], None]


class EntityConfigs:
    """What administrators set, read, written and followed (`ZkConfigManager`).

    A notice only says whose configuration changed: what stands now is read and told, whole.
    Who reads settings of users to write them changed holds `turn`: quotas and credentials share
    their nodes.
    """

    def __init__(self, zk: Session, now_ms: Callable[[], int]) -> None:
        self.turn = asyncio.Lock()
        self._zk = zk
        self._notices = ChangeNotifications(
            zk, znodes.CONFIG_CHANGES, "config_change_", self._take, now_ms
        )
        self._callbacks: dict[str, list[Callback]] = {
            kind: [] for kind in (TOPICS, BROKERS, USERS, CLIENTS, IPS)
        }

    def on_change(self, callback: Callback, kind: str = TOPICS) -> None:
        """Call back on the loop with an entity and all its settings when they were changed."""
        self._callbacks[kind].append(callback)

    async def read(self, kind: str, entity: str) -> dict[str, str]:
        """The entity's own settings; empty for one without any. Raises ValueError for what is no
        settings."""
        try:
            data, _ = await self._zk.get(znodes.config_path(kind, entity))
        except NoNodeError:
            return {}
        return znodes.decode_config(data)

    async def entities(self, kind: str) -> list[str]:
        """Who has settings of their own, by the names of their nodes."""
        try:
            return sorted(await self._zk.children(f"/config/{kind}"))
        except NoNodeError:
            return []

    async def write(self, kind: str, entity: str, settings: Mapping[str, str]) -> None:
        """Put all settings of an entity and tell every broker (`AdminZkClient`).

        After a lost connection both are done again. Whoever waits may give up: what is written is
        told in any case, lest brokers go by different settings.
        """
        notice = znodes.encode_config_change(f"{kind}/{entity}")
        with self._notices.owed(notice):
            await put(self._zk, znodes.config_path(kind, entity), znodes.encode_config(settings))
        await self._notices.give(notice)

    async def readable(self, kind: str, entity: str) -> dict[str, str]:
        """As `read`; none, told in the log, where they cannot be read: that must stop nobody."""
        try:
            return await self.read(kind, entity)
        except ValueError as error:
            log.error("%s cannot be read: %r", znodes.config_path(kind, entity), error)
            return {}

    async def topic_overrides(self, topic: str) -> dict[str, str]:
        """The topic's own settings; empty for a topic without any."""
        return await self.readable(TOPICS, topic)

    async def overrides_of(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """`topic_overrides` for many topics in one round trip's time."""
        found = await asyncio.gather(*(self.topic_overrides(topic) for topic in topics))
        return dict(zip(topics, found, strict=True))

    async def start(self) -> None:
        """Follow the changes."""
        await self._notices.start()

    async def stop(self) -> None:
        await self._notices.stop()

    async def _take(self, data: bytes) -> None:
        kind, entity = znodes.decode_config_change(data)
        if kind in self._callbacks:
            await self._tell(kind, entity)

    async def _tell(self, kind: str, entity: str) -> None:
        try:
            settings = await self.read(kind, entity)
        except ValueError as error:
            log.error("%s cannot be read: %r", znodes.config_path(kind, entity), error)
            return
        log.info("%s %s now has %s", kind, entity, sorted(settings))
        for callback in self._callbacks[kind]:
            try:
                callback(entity, settings)
            except Exception:
                log.exception("settings of %s %s are not taken", kind, entity)
