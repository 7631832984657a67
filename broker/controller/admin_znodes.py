"""Nodes by which brokers and old tools ask the controller for something, and which it removes.

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
    """Reads them, and writes under the controller's epoch. A watch is set whatever is found."""

    def __init__(self, zk: Session, store: MetadataStore) -> None:
        self._zk = zk
        self._store = store

    async def elections(self, watch: Watch) -> list[TopicPartition] | None:
        """Partitions whose preferred leaders are asked for; None when nobody asks."""
        data = await self._read(znodes.PREFERRED_REPLICA_ELECTION, watch)
        if data is None:
            return None
        try:
            return znodes.decode_elections(data)
        except MALFORMED as error:
            log.warning("%s is ignored: %r", znodes.PREFERRED_REPLICA_ELECTION, error)
            return []

    async def forget_elections(self) -> None:
        await self._store.forget(znodes.PREFERRED_REPLICA_ELECTION)

    async def reassignments(
        self, watch: Watch | None = None
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """New replicas asked for; what cannot be read is left for people to mend, and ignored."""
        data = await self._read(znodes.REASSIGN_PARTITIONS, watch)
        if data is None:
            return {}
        try:
            return znodes.decode_reassignments(data)
        except MALFORMED as error:
            log.warning("%s is ignored: %r", znodes.REASSIGN_PARTITIONS, error)
            return {}

    async def forget_reassignments(
        self, is_settled: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Take out what is settled; the node goes when nothing is left in it."""
        asked = await self.reassignments()
        left = {tp: replicas for tp, replicas in asked.items() if not is_settled(tp, replicas)}
        if asked and not left:
            await self._store.forget(znodes.REASSIGN_PARTITIONS)
        elif left != asked:
            await self._write(left)

    async def log_dir_events(self, watch: Watch) -> Mapping[str, int]:
        """Paths of the events, and the brokers that reported them (-1: it cannot be read)."""
        events = {}
        for name in await self._zk.children(znodes.LOG_DIR_EVENTS, watch):
            path = f"{znodes.LOG_DIR_EVENTS}/{name}"
            data = await self._read(path)
            if data is not None:
                events[path] = _broker(path, data)
        return events

    async def forget(self, path: str) -> None:
        await self._store.forget(path)

    async def _read(self, path: str, watch: Watch | None = None) -> bytes | None:
        while True:
            try:
                data, _ = await self._zk.get(path, watch)
                return data
            except NoNodeError:
                if watch is None or await self._zk.exists(path, watch) is None:
                    return None

    async def _write(self, wanted: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        data = znodes.encode_reassignments(wanted)
        while True:
            try:
                await self._store.fenced([Set(znodes.REASSIGN_PARTITIONS, data)])
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
