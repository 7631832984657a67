"""What topics were set to, known before their logs are made and kept up to date after."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from urteil.broker.config.values import ConfigError, topic_keys
from urteil.broker.zookeeper.configs import EntityConfigs

log = logging.getLogger("settings")

READ_TIMEOUT_S = 3.0
UNREAD: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "min.insync.replicas": str(2**31 - 1),
}
"""Of a topic whose settings cannot be read yet: nothing is lost that they may keep, and nothing
acknowledged that they may not."""


class TopicSettings:
    """The overrides of topics, by name; `on_change(topic, overrides)` is called for later ones.

    A topic that cannot be read in time (ZooKeeper is away) starts as `UNREAD`: a controller that
    still reaches this broker must not wait for it. It is read again later.
    Values that may not be, by whatever hand, are told in the log and passed over.
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
        configs.on_change(self._changed)

    def overrides(self, topic: str) -> Mapping[str, str]:
        return UNREAD if topic in self._unread else self._known.get(topic, {})

    async def know(self, topics: Iterable[str]) -> None:
        """Read the topics that are not known yet."""
        missing = sorted(set(topics) - set(self._known) - self._unread)
        if not missing:
            return
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                found = await self._read(missing)
                self._known.update({name: _usable(name, one) for name, one in found.items()})
        except TimeoutError:
            log.warning("settings of %d topics are not readable now", len(missing))
            self._unread.update(missing)
            task = asyncio.get_running_loop().create_task(self._read_late(missing))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    def forget(self, topic: str) -> None:
        """The topic was deleted; one of the same name may come with other settings."""
        self._known.pop(topic, None)
        self._unread.discard(topic)

    async def _read_late(self, topics: list[str]) -> None:
        for topic, overrides in (await self._read(topics)).items():
            if topic in self._unread:  # else it was deleted
                self._unread.discard(topic)
                self._take(topic, overrides)

    async def _read(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """What stands: a notice that comes meanwhile may tell of what was read before it."""
        while True:
            noticed = self._noticed
            found = await self._configs.overrides_of(topics)
            if noticed == self._noticed:
                return found

    def _changed(self, topic: str, overrides: dict[str, str]) -> None:
        self._noticed += 1
        # a topic that is not known is read when it comes here; a late notice of one that was
        # deleted must not stand for the settings of its successor
        if topic in self._known:
            self._take(topic, overrides)

    def _take(self, topic: str, overrides: Mapping[str, str]) -> None:
        self._known[topic] = _usable(topic, overrides)
        self._on_change(topic, self._known[topic])

    def close(self) -> None:
        for task in self._late:
            task.cancel()


def _usable(topic: str, overrides: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in overrides.items() if _may_be(topic, name, value)}


def _may_be(topic: str, name: str, value: str) -> bool:
    key, _ = topic_keys().get(name, (None, ()))
    try:
        if key is not None:
            key.parse(value)
    except ConfigError as error:
        log.error("a setting of topic %s is ignored: %s", topic, error)
        return False
    return True
