"""Settings of topics, brokers, users, clients and addresses in `/config/<kind>/<entity>`."""

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
    """Reads, writes and follows settings of entities (`ZkConfigManager`).

    A notification only names the entity; its settings are then read in full. Hold `turn` to change
    settings of users: quotas and credentials share their nodes.
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
        """Register a callback, called on the loop with an entity and all its settings after a
        change."""
        self._callbacks[kind].append(callback)

    async def read(self, kind: str, entity: str) -> dict[str, str]:
        """Return the entity's own settings; empty without any. Raises ValueError for malformed
        data."""
        try:
            data, _ = await self._zk.get(znodes.config_path(kind, entity))
        except NoNodeError:
            return {}
        return znodes.decode_config(data)

    async def entities(self, kind: str) -> list[str]:
        """Return the node names of all entities with settings."""
        try:
            return sorted(await self._zk.children(f"/config/{kind}"))
        except NoNodeError:
            return []

    async def write(self, kind: str, entity: str, settings: Mapping[str, str]) -> None:
        """Replace all settings of an entity and notify all brokers (`AdminZkClient`).

        Both steps are repeated after a lost connection. They complete even if the caller is
        cancelled, so that all brokers use the same settings.
        """
        notice = znodes.encode_config_change(f"{kind}/{entity}")
        with self._notices.notify_in_any_case(notice):
            await put(self._zk, znodes.config_path(kind, entity), znodes.encode_config(settings))
        await self._notices.notify(notice)

    async def read_or_empty(self, kind: str, entity: str) -> dict[str, str]:
        """Like `read`, but log malformed settings and return none: they must not stop the
        broker."""
        try:
            return await self.read(kind, entity)
        except ValueError as error:
            log.error("%s cannot be read: %r", znodes.config_path(kind, entity), error)
            return {}

    async def topic_overrides(self, topic: str) -> dict[str, str]:
        """Return the topic's own settings; empty without any."""
        return await self.read_or_empty(TOPICS, topic)

    async def overrides_of(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """Return `topic_overrides` of many topics in one round trip."""
        overrides = await asyncio.gather(*(self.topic_overrides(topic) for topic in topics))
        return dict(zip(topics, overrides, strict=True))

    async def start(self) -> None:
        """Begin to follow changes."""
        await self._notices.start()

    async def stop(self) -> None:
        await self._notices.stop()

    async def _take(self, data: bytes) -> None:
        kind, entity = znodes.decode_config_change(data)
        if kind in self._callbacks:
            await self._notify(kind, entity)

    async def _notify(self, kind: str, entity: str) -> None:
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
                log.exception("settings of %s %s are rejected", kind, entity)
