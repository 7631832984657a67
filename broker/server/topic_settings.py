"""What topics were set to, known before their logs are made and kept up to date after."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from urteil.broker.zookeeper.configs import EntityConfigs

log = logging.getLogger("settings")

READ_TIMEOUT_S = 3.0


class TopicSettings:
    """The overrides of topics, by name; `on_change(topic, overrides)` is called for later ones.

    A topic that cannot be read in time (ZooKeeper is away) starts with the broker's defaults: a
    controller that still reaches this broker must not wait for it. It is read again later.
    """

    def __init__(
        self, configs: EntityConfigs, on_change: Callable[[str, Mapping[str, str]], None]
    ) -> None:
        self._configs = configs
        self._on_change = on_change
        self._known: dict[str, Mapping[str, str]] = {}
        self._late: set[asyncio.Task[None]] = set()
        configs.on_change(self._changed)

    def overrides(self, topic: str) -> Mapping[str, str]:
        return self._known.get(topic, {})

    async def know(self, topics: Iterable[str]) -> None:
        """Read the topics that are not known yet."""
        missing = sorted(set(topics) - set(self._known))
        if not missing:
            return
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                self._known.update(await self._configs.overrides_of(missing))
        except TimeoutError:
            log.warning("settings of %d topics are not readable now: defaults", len(missing))
            task = asyncio.get_running_loop().create_task(self._read_late(missing))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    def forget(self, topic: str) -> None:
        """The topic was deleted; one of the same name may come with other settings."""
        self._known.pop(topic, None)

    async def _read_late(self, topics: list[str]) -> None:
        for topic, overrides in (await self._configs.overrides_of(topics)).items():
            self._take(topic, overrides)

    def _changed(self, topic: str, overrides: dict[str, str]) -> None:
        # a topic that is not known is read when it comes here; a late notice of one that was
        # deleted must not stand for the settings of its successor
        if topic in self._known:
            self._take(topic, overrides)

    def _take(self, topic: str, overrides: Mapping[str, str]) -> None:
        self._known[topic] = overrides
        self._on_change(topic, overrides)

    def close(self) -> None:
        for task in self._late:
            task.cancel()
