"""The ACLs of the cluster: keeps this broker's table equal to ZooKeeper, and changes ACLs there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from urteil.broker.security.acls.acl_model import AclFilter, Entry, Pattern, PatternType
from urteil.broker.security.acls.acl_table import AclTable, VersionedAcls
from urteil.broker.security.acls.acl_znodes import (
    CHANGE_PREFIX,
    PLACES,
    AclStore,
    decode_change,
    encode_change,
    place_of,
)
from urteil.broker.zookeeper.change_notifications import ChangeNotifications
from urteil.broker.zookeeper.session import Session

log = logging.getLogger("acls")

MAX_RETRIES = 10
BACKOFF_S = 0.1

Change = Callable[[tuple[Entry, ...]], tuple[Entry, ...]]


class Contended(Exception):
    """The change was given up after too many concurrent changes of the same ACLs."""


@dataclass(frozen=True, slots=True)
class Removed:
    """An ACL that a filter matched, and the error if it could not be removed."""

    pattern: Pattern
    entry: Entry
    failure: Exception | None = None


class ClusterAcls:
    """Applies one change at a time on this broker; among brokers the version of the node
    decides."""

    def __init__(self, zk: Session, now_ms: Callable[[], int]) -> None:
        self.table = AclTable()
        self._store = AclStore(zk)
        self._turn = asyncio.Lock()
        self._notices = {
            place: ChangeNotifications(
                zk, place.changes, CHANGE_PREFIX, self._taker(place.kind), now_ms
            )
            for place in PLACES
        }

    async def start(self) -> None:
        """Read all ACLs, then follow changes. Raises ValueError for a malformed node: a broker that
        ignored a denial would allow what is forbidden."""
        await self._store.prepare()
        patterns = await self._store.patterns()
        acls_by_pattern = await asyncio.gather(*(self._store.read(pattern) for pattern in patterns))
        for pattern, acls in zip(patterns, acls_by_pattern, strict=True):
            self.table.put(pattern, acls)
        for notices in self._notices.values():
            await notices.start()

    async def stop(self) -> None:
        for notices in self._notices.values():
            await notices.stop()

    def _taker(self, kind: PatternType) -> Callable[[bytes], asyncio.Future[None]]:
        return lambda data: asyncio.ensure_future(self._take(decode_change(data, kind)))

    async def _take(self, pattern: Pattern) -> None:
        async with self._turn:
            acls = await self._store.read(pattern)
            log.info("ACLs of %s are now of version %d", pattern, acls.version)
            self.table.put(pattern, acls)

    async def add(self, pattern: Pattern, entries: Sequence[Entry]) -> None:
        """Add entries. Raises Contended."""
        async with self._turn:
            await self._change(
                pattern, lambda standing: tuple(dict.fromkeys((*standing, *entries)))
            )

    async def remove(self, filters: Sequence[AclFilter]) -> list[list[Removed]]:
        """Remove ACLs; return the result of each filter. An ACL that several filters match counts
        for the first one."""
        removed: list[list[Removed]] = [[] for _ in filters]
        async with self._turn:
            named = [pattern for acl_filter in filters for pattern in acl_filter.named_patterns()]
            known = [pattern for pattern, _ in self.table]
            for pattern in dict.fromkeys((*known, *named)):
                own_entries = [
                    (index, acl_filter)
                    for index, acl_filter in enumerate(filters)
                    if acl_filter.picks_pattern(pattern)
                ]
                if own_entries:
                    await self._remove_from(pattern, own_entries, removed)
        return removed

    async def _remove_from(
        self,
        pattern: Pattern,
        filters: Sequence[tuple[int, AclFilter]],
        removed: list[list[Removed]],
    ) -> None:
        picked: dict[Entry, int] = {}

        def remove_picked(standing: tuple[Entry, ...]) -> tuple[Entry, ...]:
            for entry in standing:
                first = next(
                    (index for index, acl_filter in filters if acl_filter.picks_entry(entry)), None
                )
                if first is not None:
                    picked.setdefault(entry, first)
            return tuple(entry for entry in standing if entry not in picked)

        failure: Exception | None = None
        try:
            await self._change(pattern, remove_picked)
        except (Contended, ValueError) as error:  # a name that no node can have has no ACLs
            failure = error
        for entry, index in picked.items():
            removed[index].append(Removed(pattern, entry, failure))

    async def _change(self, pattern: Pattern, change: Change) -> None:
        known = self.table.get(pattern) or VersionedAcls()
        standing = self.table.get(pattern) or await self._store.read(pattern)
        notices = self._notices[place_of(pattern)]
        for _ in range(MAX_RETRIES + 1):
            changed = change(standing.entries)
            with notices.notify_in_any_case(encode_change(pattern)):
                written = await self._store.write(pattern, changed, standing.version)
            if written is not None:
                await self._on_change(pattern, known, written)
                return
            await asyncio.sleep(BACKOFF_S)  # the backoff of Apache Kafka
            standing = await self._store.read(pattern)
        raise Contended(
            f"Failed to update ACLs for {pattern} after trying a maximum of {MAX_RETRIES} times"
        )

    async def _on_change(
        self, pattern: Pattern, before: VersionedAcls, after: VersionedAcls
    ) -> None:
        """Log a change and notify other brokers. `before` is the state known here: the stored one
        may come from a write whose response was lost. After a cancelled notification this broker
        learns the change only from ZooKeeper."""
        if set(before.entries) != set(after.entries):
            log.info("ACLs of %s were changed, version %d", pattern, after.version)
            await self._notices[place_of(pattern)].notify(encode_change(pattern))
        self.table.put(pattern, after)
