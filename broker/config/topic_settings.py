"""Settings of topics: loaded before a topic's logs are created, then kept up to date."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from urteil.broker.config.values import ConfigError, topic_keys
from urteil.broker.zookeeper.entity_configs import EntityConfigs

log = logging.getLogger("settings")

READ_TIMEOUT_S = 3.0
UNREAD: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "min.insync.replicas": str(2**31 - 1),
}
"""The overrides of a topic that could not be read yet: they delete no record and acknowledge no
record that the topic's own settings would not."""


class TopicSettings:
    """The overrides of topics by name. `on_change(topic, overrides)` reports later changes.

    A topic that cannot be read in time (ZooKeeper is unreachable) starts with `UNREAD` and is read
    later: a controller that still reaches this broker must not wait for it.

    Invalid values are logged and ignored.
    """

    def __init__(
        self, configs: EntityConfigs, on_change: Callable[[str, Mapping[str, str]], None]
    ) -> None:
        self._configs = configs
        self._on_change = on_change
        self._known: dict[str, Mapping[str, str]] = {}
        self._unread: set[str] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._noticed = 0
        configs.on_change(self._apply_change)

    def overrides(self, topic: str) -> Mapping[str, str]:
        return UNREAD if topic in self._unread else self._known.get(topic, {})

    async def load(self, topics: Iterable[str]) -> None:
        """Load the settings of topics that are not loaded yet."""
        missing = sorted(set(topics) - set(self._known) - self._unread)
        if not missing:
            return
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                overrides = await self._read(missing)
                self._known.update(
                    {name: _usable(name, overrides) for name, overrides in overrides.items()}
                )
        except TimeoutError:
            log.warning("settings of %d topics are not readable now", len(missing))
            self._unread.update(missing)
            task = asyncio.get_running_loop().create_task(self._read_late(missing))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    def forget(self, topic: str) -> None:
        """Drop the settings of a deleted topic; its successor may have others."""
        self._known.pop(topic, None)
        self._unread.discard(topic)

    async def _read_late(self, topics: list[str]) -> None:
        for topic, overrides in (await self._read(topics)).items():
            if topic in self._unread:  # otherwise it was deleted
                self._unread.discard(topic)
                self._apply(topic, overrides)

    async def _read(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """Read the settings. A notice that arrives meanwhile may refer to an older state."""
        while True:
            noticed = self._noticed
            overrides = await self._configs.overrides_of(topics)
            if noticed == self._noticed:
                return overrides

    def _apply_change(self, topic: str, overrides: dict[str, str]) -> None:
        self._noticed += 1
        # an unknown topic is read when its replica arrives here; a late notice of a topic that was
        # deleted must not stand for the settings of its successor
        if topic in self._known:
            self._apply(topic, overrides)

    def _apply(self, topic: str, overrides: Mapping[str, str]) -> None:
        self._known[topic] = _usable(topic, overrides)
        self._on_change(topic, self._known[topic])

    def close(self) -> None:
        for task in self._late:
            task.cancel()


def _usable(topic: str, overrides: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in overrides.items() if _is_valid(topic, name, value)}


def _is_valid(topic: str, name: str, value: str) -> bool:
    key, _ = topic_keys().get(name, (None, ()))
    try:
        if key is not None:
            key.parse(value)
    except ConfigError as error:
        log.error("a setting of topic %s is ignored: %s", topic, error)
        return False
    return True
