"""The controller's reads and writes in ZooKeeper. Every write checks `/controller_epoch`.

A multi fails as a whole, and a lost connection hides whether it was applied. Therefore a failed
multi of many writes is repeated write by write, and after a lost connection the store reads first:
a node that has the written value counts as written.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import (
    LOST,
    BadVersionError,
    Check,
    Create,
    Delete,
    MultiFailed,
    NoNodeError,
    NotEmptyError,
    Session,
    Set,
    Watch,
)
from urteil.broker.zookeeper.session_types import Op
from urteil.broker.zookeeper.znodes import PartitionState, TopicAssignment

log = logging.getLogger("controller")

T = TypeVar("T")
States = Mapping[TopicPartition, PartitionState]
StoredStates = dict[TopicPartition, PartitionState | None]
StateWrite = Callable[[TopicPartition, PartitionState], Awaitable[PartitionState | None]]

DELETES_A_MULTI = 200
STATES_A_MULTI = 100


class ControllerFenced(Exception):
    """Another controller was elected; this one must not write any more."""


class MetadataStore:
    """ZooKeeper in one term. Writes raise ControllerFenced."""

    def __init__(self, zk: Session, epoch: int, epoch_version: int) -> None:
        self._zk = zk
        self._epoch = epoch
        self._fence = Check(znodes.CONTROLLER_EPOCH, epoch_version)
        self.closed = False

    async def write_fenced(self, ops: Sequence[Op]) -> None:
        """One multi under the controller's epoch.

        Raises ControllerFenced, MultiFailed (its index counts `ops`), ConnectionLoss and
        SessionExpiredError.
        """
        if self.closed:
            raise ControllerFenced("this term is over")
        try:
            await self._zk.multi([self._fence, *ops])
        except MultiFailed as failure:
            if failure.index == 0:
                raise ControllerFenced(f"epoch {self._epoch} is not the newest") from failure
            raise MultiFailed(failure.index - 1, failure.cause) from None

    async def read_topics(
        self, names: Iterable[str], watch: Watch | None = None
    ) -> dict[str, tuple[TopicAssignment, int]]:
        """Assignments with their znode versions, without deleted topics and without topics whose
        znode cannot be parsed."""
        names = list(names)
        assignments = await asyncio.gather(*(self._read_topic(name, watch) for name in names))
        return {
            name: assignment
            for name, assignment in zip(names, assignments, strict=True)
            if assignment is not None
        }

    async def _read_topic(
        self, topic: str, watch: Watch | None = None
    ) -> tuple[TopicAssignment, int] | None:
        try:
            data, stat = await self._zk.get(znodes.topic_path(topic), watch)
        except NoNodeError:
            return None
        try:
            return znodes.decode_topic(data), stat.version
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.error("%s is ignored: %r", znodes.topic_path(topic), error)
            return None

    async def read_states(
        self, tps: Iterable[TopicPartition]
    ) -> dict[TopicPartition, PartitionState]:
        """Partition states, without partitions that have no state or an unreadable one."""
        tps = list(tps)
        states = await asyncio.gather(*(self.read_state(tp) for tp in tps))
        return {tp: state for tp, state in zip(tps, states, strict=True) if state is not None}

    async def read_state(self, tp: TopicPartition) -> PartitionState | None:
        try:
            data, stat = await self._zk.get(znodes.state_path(*tp))
        except NoNodeError:
            return None
        try:
            return znodes.decode_state(data, stat.version, stat.mzxid)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.error(
                "%s cannot be read: %r; the partition keeps its state until the znode is repaired "
                "or deleted (then the partition starts over)", znodes.state_path(*tp), error,
            )  # fmt: skip
            return None

    async def create_states(self, states: States) -> StoredStates:
        """Create the first states; returns the states in ZooKeeper (None: topic deleted)."""
        await self._await_all(
            self._create_if_missing(znodes.partitions_path(topic))
            for topic in dict.fromkeys(tp[0] for tp in states)
        )
        return await self._in_multis(states, self._create_many)

    async def update_states(self, states: States) -> StoredStates:
        """Replace states, each if it still has the version in its `partition_epoch`.

        Returns the states with their new versions; None where the version differed.
        """
        return await self._in_multis(states, self._update_many)

    async def _in_multis(
        self, states: States, write: Callable[[States], Awaitable[StoredStates]]
    ) -> StoredStates:
        """Write in multis of many states, pipelined: one broker may lead thousands."""
        rows = list(states.items())
        chunks = [rows[at : at + STATES_A_MULTI] for at in range(0, len(rows), STATES_A_MULTI)]
        done = await self._await_all(write(dict(part)) for part in chunks)
        return {tp: stored for part in done for tp, stored in part.items()}

    async def _create_many(self, states: States) -> StoredStates:
        ops = [op for tp, state in states.items() for op in _creations(tp, state)]
        try:
            await self.write_fenced(ops)
        except (MultiFailed, *LOST):
            return await self._write_each(states, self._create_state)
        return {tp: replace(state, partition_epoch=0) for tp, state in states.items()}

    async def _update_many(self, states: States) -> StoredStates:
        """One multi; if it fails or its answer is lost, each state is written on its own."""
        try:
            await self.write_fenced([_replacement(tp, state) for tp, state in states.items()])
        except MultiFailed as failure:
            if not isinstance(failure.cause, BadVersionError | NoNodeError):
                raise
            if len(states) == 1:
                return dict.fromkeys(states)
            return await self._write_each(states, self._update_state)
        except LOST:
            return await self._write_each(states, self._update_lost)
        return {tp: _next_version(state) for tp, state in states.items()}

    async def _write_each(self, states: States, write: StateWrite) -> StoredStates:
        results = await self._await_all(write(tp, state) for tp, state in states.items())
        return dict(zip(states, results, strict=True))

    async def _await_all(self, calls: Iterable[Awaitable[T]]) -> list[T]:
        """Await all calls, pipelined, before the first failure is raised."""
        results = await asyncio.gather(*calls, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    async def _create_if_missing(self, path: str) -> None:
        while await self._zk.exists(path) is None:
            try:
                await self.write_fenced([Create(path)])
            except MultiFailed as failure:
                if isinstance(failure.cause, NoNodeError):
                    return  # the topic was deleted
            except LOST:
                continue

    async def _create_state(
        self, tp: TopicPartition, state: PartitionState
    ) -> PartitionState | None:
        ops = _creations(tp, state)
        while True:
            try:
                await self.write_fenced(ops)
                return replace(state, partition_epoch=0)
            except MultiFailed as failure:
                if isinstance(failure.cause, NoNodeError):
                    return None
                if await self._zk.exists(znodes.state_path(*tp)) is not None:
                    return await self.read_state(tp)
                ops = ops[-1:]  # only the parent exists
            except LOST:
                continue

    async def _update_state(
        self, tp: TopicPartition, state: PartitionState
    ) -> PartitionState | None:
        try:
            await self.write_fenced([_replacement(tp, state)])
            return _next_version(state)
        except MultiFailed as failure:
            if not isinstance(failure.cause, BadVersionError | NoNodeError):
                raise
            return None
        except LOST:
            return await self._update_lost(tp, state)

    async def _update_lost(
        self, tp: TopicPartition, state: PartitionState
    ) -> PartitionState | None:
        """After a lost connection, a state equal to the written one is this controller's own."""
        written = _next_version(state)
        while True:
            stored = await self.read_state(tp)
            if stored == written:
                return written
            if stored is None or stored.partition_epoch != state.partition_epoch:
                return None
            try:
                await self.write_fenced([_replacement(tp, state)])
                return written
            except MultiFailed as failure:
                if not isinstance(failure.cause, BadVersionError | NoNodeError):
                    raise
            except LOST:
                continue

    async def write_topic(self, topic: str, assignment: TopicAssignment, version: int) -> bool:
        """Replace an assignment of that version; True if ZooKeeper has it now."""
        data = znodes.encode_topic(assignment)
        while True:
            try:
                await self.write_fenced([Set(znodes.topic_path(topic), data, version)])
                return True
            except MultiFailed:
                return False
            except LOST:
                stored = await self._read_topic(topic)
                if stored is None or stored[1] != version:
                    return stored is not None and stored[0] == assignment

    async def change_topic(
        self, topic: str, change: Callable[[TopicAssignment], TopicAssignment]
    ) -> TopicAssignment | None:
        """Apply `change` to the current assignment, so that partitions added meanwhile stay.

        Returns the written assignment; None if the topic was deleted.
        """
        while True:
            stored = await self._read_topic(topic)
            if stored is None:
                return None
            changed = change(stored[0])
            if changed == stored[0] or await self.write_topic(topic, changed, stored[1]):
                return changed

    async def delete_topic(self, topic: str, topic_id: uuid.UUID | None) -> None:
        """Delete a topic's states, its assignment, its configuration and its deletion request.

        The request is deleted in the same multi as the assignment, so that the next controller
        finds both or neither. If a lost answer hid a completed deletion and the topic exists under
        another id, it is a new topic and stays, with its own deletion request.
        """
        lost = False
        while True:
            if lost:
                stored = await self._read_topic(topic)
                if stored is None or stored[0].topic_id != topic_id:
                    return
            below = await self._descendants(znodes.partitions_path(topic))
            last = [
                znodes.topic_path(topic),
                znodes.topic_config_path(topic),
                znodes.delete_topic_path(topic),
            ]
            there = [path for path in last if await self._zk.exists(path) is not None]
            if znodes.delete_topic_path(topic) not in there:
                return  # a previous try succeeded
            try:
                for start in range(0, len(below), DELETES_A_MULTI):
                    chunk = below[start : start + DELETES_A_MULTI]
                    await self.write_fenced([Delete(path) for path in chunk])
                await self.write_fenced([Delete(path) for path in there])
            except MultiFailed as failure:
                if not isinstance(failure.cause, NoNodeError | NotEmptyError):
                    raise
            except LOST:
                lost = True

    async def delete_deletion_request(self, topic: str) -> None:
        """Delete the request to delete a topic that does not exist or must not be deleted."""
        await self.delete_znode(znodes.delete_topic_path(topic))

    async def delete_znode(self, path: str) -> None:
        """Delete the znode of a request, if it exists."""
        while await self._zk.exists(path) is not None:
            try:
                await self.write_fenced([Delete(path)])
            except MultiFailed as failure:
                if not isinstance(failure.cause, NoNodeError):
                    raise
            except LOST:
                continue

    async def _descendants(self, path: str) -> list[str]:
        """A znode and its descendants, children before parents."""
        try:
            names = await self._zk.children(path)
        except NoNodeError:
            return []
        trees = await asyncio.gather(*(self._descendants(f"{path}/{name}") for name in names))
        return [*(descendant for tree in trees for descendant in tree), path]


def _creations(tp: TopicPartition, state: PartitionState) -> list[Op]:
    made = Create(znodes.state_path(*tp), znodes.encode_state(state))
    return [Create(znodes.partition_path(*tp)), made]


def _replacement(tp: TopicPartition, state: PartitionState) -> Op:
    return Set(znodes.state_path(*tp), znodes.encode_state(state), state.partition_epoch)


def _next_version(state: PartitionState) -> PartitionState:
    return replace(state, partition_epoch=state.partition_epoch + 1)
