"""Znodes that carry requests of old tools and reports of brokers; the controller deletes them.

Sources: `ReassignPartitionsZNode`, `PreferredReplicaElectionZNode`, `LogDirEventNotificationZNode`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping

from urteil.broker.controller.metadata_store import MetadataStore
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import LOST, MultiFailed, NoNodeError, Session, Watch
from urteil.broker.zookeeper.session_types import Set

log = logging.getLogger("controller")

MALFORMED = (ValueError, KeyError, TypeError)


class AdminZnodes:
    """Reads, deletes and writes these znodes, the latter under the controller's epoch.

    A read sets its watch also where the znode does not exist.
    """

    def __init__(self, zk: Session, store: MetadataStore) -> None:
        self._zk = zk
        self._store = store

    async def elections(self, watch: Watch) -> list[TopicPartition] | None:
        """Partitions of a preferred leader election; None without a request."""
        data = await self._read(znodes.PREFERRED_REPLICA_ELECTION, watch)
        if data is None:
            return None
        try:
            return znodes.decode_elections(data)
        except MALFORMED as error:
            log.warning("%s is ignored: %r", znodes.PREFERRED_REPLICA_ELECTION, error)
            return []

    async def delete_elections(self) -> None:
        await self._store.delete_znode(znodes.PREFERRED_REPLICA_ELECTION)

    async def reassignments(
        self, watch: Watch | None = None
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """The requested replicas of each partition. A malformed znode is logged and ignored."""
        data = await self._read(znodes.REASSIGN_PARTITIONS, watch)
        if data is None:
            return {}
        try:
            return znodes.decode_reassignments(data)
        except MALFORMED as error:
            log.warning("%s is ignored: %r", znodes.REASSIGN_PARTITIONS, error)
            return {}

    async def delete_reassignments(
        self, is_settled: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Delete the settled partitions from the znode, and the znode once it is empty."""
        requested = await self.reassignments()
        remaining = {
            tp: replicas for tp, replicas in requested.items() if not is_settled(tp, replicas)
        }
        if requested and not remaining:
            await self._store.delete_znode(znodes.REASSIGN_PARTITIONS)
        elif remaining != requested:
            await self._write(remaining)

    async def log_dir_events(self, watch: Watch) -> Mapping[str, int]:
        """The paths of the reports with their brokers; -1 for a malformed report."""
        events = {}
        for name in await self._zk.children(znodes.LOG_DIR_EVENTS, watch):
            path = f"{znodes.LOG_DIR_EVENTS}/{name}"
            data = await self._read(path)
            if data is not None:
                events[path] = _broker(path, data)
        return events

    async def delete(self, path: str) -> None:
        await self._store.delete_znode(path)

    async def _read(self, path: str, watch: Watch | None = None) -> bytes | None:
        while True:
            try:
                data, _ = await self._zk.get(path, watch)
                return data
            except NoNodeError:
                if watch is None or await self._zk.exists(path, watch) is None:
                    return None

    async def _write(self, reassignments: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        data = znodes.encode_reassignments(reassignments)
        while True:
            try:
                await self._store.write_fenced([Set(znodes.REASSIGN_PARTITIONS, data)])
            except MultiFailed as failure:
                if not isinstance(failure.cause, NoNodeError):
                    raise
            except LOST:
                continue
            return


def _broker(path: str, data: bytes) -> int:
    try:
        return int(json.loads(data)["broker"])
    except MALFORMED as error:
        log.warning("%s is ignored: %r", path, error)
        return -1
