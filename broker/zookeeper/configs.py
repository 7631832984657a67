"""Topic configurations: read from `/config/topics/<t>`, changes told by `/config/changes`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import NoNodeError, Session

log = logging.getLogger("configs")

PREFIX = "config_change_"
TopicConfigCallback = Callable[[str, dict[str, str]], None]


class TopicConfigs:
    """What administrators set for topics, over the broker's own defaults."""

    def __init__(self, zk: Session) -> None:
        self._zk = zk
        self._callbacks: list[TopicConfigCallback] = []
        self._last_seen = -1
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def on_change(self, callback: TopicConfigCallback) -> None:
        """Call back on the loop with a topic and all its overrides when they were changed."""
        self._callbacks.append(callback)

    async def topic_overrides(self, topic: str) -> dict[str, str]:
        """The topic's own settings; empty for a topic without any."""
        try:
            data, _ = await self._zk.get(znodes.topic_config_path(topic))
        except NoNodeError:
            return {}
        return znodes.decode_config(data)

    async def overrides_of(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """`topic_overrides` for many topics in one round trip's time."""
        found = await asyncio.gather(*(self.topic_overrides(topic) for topic in topics))
        return dict(zip(topics, found, strict=True))

    async def start(self) -> None:
        """Follow `/config/changes`, from the oldest that is there: a change made after its topic
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
        return [name for name in names if name.startswith(PREFIX)]

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            for name in sorted(await self._names(), key=_sequence):
                if _sequence(name) > self._last_seen:
                    self._last_seen = _sequence(name)
                    await self._notice(name)

    async def _notice(self, name: str) -> None:
        try:
            data, _ = await self._zk.get(f"{znodes.CONFIG_CHANGES}/{name}")
            kind, entity = znodes.decode_config_change(data)
        except NoNodeError:
            return
        except (ValueError, KeyError) as error:
            log.warning("%s/%s cannot be read: %r", znodes.CONFIG_CHANGES, name, error)
            return
        if kind == "topics":
            overrides = await self.topic_overrides(entity)
            log.info("topic %s now has %s", entity, overrides)
            for callback in self._callbacks:
                callback(entity, overrides)


def _sequence(name: str) -> int:
    return int(name.removeprefix(PREFIX))
