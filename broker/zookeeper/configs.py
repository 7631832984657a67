"""Settings of topics and brokers in `/config/<kind>/<entity>`, changes by `/config/changes`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import LOST, NodeExistsError, NoNodeError, Session

log = logging.getLogger("configs")

PREFIX = "config_change_"
TOPICS, BROKERS = "topics", "brokers"
EVERY_BROKER = "<default>"
KEPT_MS = 15 * 60 * 1000
"""How long notices stay for brokers that were away."""

Callback = Callable[[str, dict[str, str]], None]


class EntityConfigs:
    """What administrators set, read, written and followed (`ZkConfigManager`).

    A notice only says whose configuration changed: what stands now is read and told, whole. Those
    of clients, users and addresses are passed over.
    """

    def __init__(self, zk: Session, now_ms: Callable[[], int]) -> None:
        self._zk = zk
        self._now_ms = now_ms
        self._callbacks: dict[str, list[Callback]] = {TOPICS: [], BROKERS: []}
        self._last_seen = -1
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

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

    async def write(self, kind: str, entity: str, settings: Mapping[str, str]) -> None:
        """Put all settings of an entity and tell every broker (`AdminZkClient`).

        After a lost connection both are done again: a second notice does no harm.
        """
        await self._put(znodes.config_path(kind, entity), znodes.encode_config(settings))
        notice = znodes.encode_config_change(f"{kind}/{entity}")
        while True:
            try:
                await self._zk.create(f"{znodes.CONFIG_CHANGES}/{PREFIX}", notice, sequence=True)
                return
            except LOST:
                continue

    async def _put(self, path: str, data: bytes) -> None:
        there = True
        while True:
            try:
                if there:
                    await self._zk.set(path, data)
                else:
                    await self._zk.create(path, data, make_parents=True)
                return
            except NoNodeError:
                there = False
            except NodeExistsError:
                there = True
            except LOST:
                continue

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
        """Follow `/config/changes`, from the oldest that is there: a change made after its entity
        was read and before now must not be missed (`ZkNodeChangeNotificationListener.init`)."""
        self._changed.set()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _on_watch(self, _path: str) -> None:
        self._changed.set()

    async def _names(self) -> list[str]:
        names = await self._zk.children(znodes.CONFIG_CHANGES, self._on_watch)
        return sorted((name for name in names if _is_notice(name)), key=_sequence)

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            names = await self._names()
            for name in names:
                if _sequence(name) > self._last_seen:
                    self._last_seen = _sequence(name)
                    await self._notice(name)
            await self._purge(names)

    async def _notice(self, name: str) -> None:
        try:
            data, _ = await self._zk.get(f"{znodes.CONFIG_CHANGES}/{name}")
            kind, entity = znodes.decode_config_change(data)
        except NoNodeError:
            return
        except (ValueError, KeyError, TypeError) as error:
            log.warning("%s/%s cannot be read: %r", znodes.CONFIG_CHANGES, name, error)
            return
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

    async def _purge(self, names: list[str]) -> None:
        """Remove notices that nobody needs any more; only when a new one comes, as Kafka does."""
        for name in names:
            path = f"{znodes.CONFIG_CHANGES}/{name}"
            stat = await self._zk.exists(path)
            if stat is None or self._now_ms() - stat.created_ms <= KEPT_MS:
                continue
            try:
                await self._zk.delete(path)
            except (NoNodeError, *LOST):
                continue  # another broker was faster, or the next notice brings the next try


def _is_notice(name: str) -> bool:
    return name.startswith(PREFIX) and name.removeprefix(PREFIX).isdigit()


def _sequence(name: str) -> int:
    return int(name.removeprefix(PREFIX))
