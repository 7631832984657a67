"""Reassignments (KIP-455): from what is asked for to the last replica deleted.

Every step leaves in ZooKeeper what the next controller needs to go on: the new replicas and those
that are to go stand in `/brokers/topics/<t>` from the first write to the last one.
Source: `KafkaController.onPartitionReassignment` (the letters are those of its phases).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from urteil.broker.base.offload import paced
from urteil.broker.controller.admin_znodes import AdminZnodes
from urteil.broker.controller.api_error import NO_PARTITION, ApiError
from urteil.broker.controller.replica_assignment import (
    ReplicaAssignment,
    by_topic,
    target_problem,
    with_assignments,
)
from urteil.broker.controller.request_batch import RequestBatch
from urteil.broker.controller.services import Services
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.session import Watch
from urteil.broker.zookeeper.znodes import TopicAssignment

log = logging.getLogger("controller")

NOTHING_TO_CANCEL = ApiError(
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
)
Wanted = dict[TopicPartition, ReplicaAssignment]


class Reassignments:
    """Runs in the events of one term."""

    def __init__(self, services: Services, nodes: AdminZnodes) -> None:
        self._services = services
        self._nodes = nodes

    async def alter(
        self, asked: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, ApiError | None]:
        """Begin, replace or (None) cancel; answers why not, or None for what was taken on.

        The newest wish counts: what old tools asked for these partitions is forgotten.
        """
        results: dict[TopicPartition, ApiError | None] = {}
        wanted: Wanted = {}
        async for tp, target in paced(asked.items()):
            judged = self._judge(tp, target)
            if isinstance(judged, ReplicaAssignment):
                wanted[tp] = judged
            results[tp] = judged if isinstance(judged, ApiError) else None
        await self._nodes.forget_reassignments(lambda tp, _: tp in wanted)
        for tp in wanted.keys() - (await self._pursue(wanted)):
            results[tp] = NO_PARTITION
        return results

    def _judge(
        self, tp: TopicPartition, target: Sequence[int] | None, *, alive: bool = True
    ) -> ReplicaAssignment | ApiError:
        """`alive` asks for new replicas that are."""
        context = self._services.context
        now = context.assignment(tp)
        if target is None and not now.is_under_way:
            return NOTHING_TO_CANCEL
        wanted = now.origin if target is None else target
        state = context.states.get(tp)
        live = context.live if alive else frozenset(wanted)
        problem = target_problem(now, wanted, live, state.isr if state else ())
        if problem is not None:
            return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        if not now.replicas or context.is_going(tp[0]):
            return NO_PARTITION
        return now.to(wanted)

    async def take_in_node(self, watch: Watch) -> set[TopicPartition]:
        """What old tools ask for in `/admin/reassign_partitions`; answers what was taken on.

        Their targets may be away. What is under way stays in the node, and is not begun again.
        """
        context = self._services.context
        wanted, refused = {}, set()
        for tp, target in (await self._nodes.reassignments(watch)).items():
            judged = self._judge(tp, target, alive=False)
            if isinstance(judged, ApiError):
                log.warning("reassignment of %s-%d: %s", *tp, judged.message)
                refused.add(tp)
            elif not judged.is_under_way or judged != context.assignment(tp):
                wanted[tp] = judged
        taken = await self._pursue(wanted)
        refused |= wanted.keys() - taken
        if refused:
            await self._nodes.forget_reassignments(lambda tp, _: tp in refused)
        return taken

    async def resume(
        self,
        without: Collection[TopicPartition] = (),
        *,
        on: Collection[int] | None = None,
    ) -> None:
        """Go on with what is under way: all of it, or what has targets `on` these brokers.

        Also with what a controller wrote, and died before it took others out of the ISR.
        """
        context = self._services.context
        tps = [*context.reassigning(), *(tp for tp in context.partitions() if self._leaving(tp))]
        under_way = {tp: context.assignment(tp) for tp in tps}
        await self._pursue(
            {
                tp: one
                for tp, one in under_way.items()
                if tp not in without and (on is None or not set(on).isdisjoint(one.target))
            }
        )

    async def finish(self) -> None:
        """Complete those whose targets are all in sync."""
        await self._pursue({tp: self._services.context.assignment(tp) for tp in self.ripe()})

    def ripe(self) -> list[TopicPartition]:
        """Under way, and with nothing left to wait for."""
        return [tp for tp in self._services.context.reassigning() if self._is_complete(tp)]

    def _is_complete(self, tp: TopicPartition) -> bool:
        context = self._services.context
        state = context.states.get(tp)
        isr = state.isr if state is not None else ()
        return context.assignment(tp).is_complete(isr, context.live_for(tp))

    def _leaving(self, tp: TopicPartition) -> set[int]:
        """In sync without being replicas any more; empty where no replica is in sync."""
        context = self._services.context
        state, replicas = context.states.get(tp), set(context.replicas(tp))
        isr = set(state.isr) if state is not None else set()
        return isr - replicas if isr & replicas else set()

    # -- the phases -----------------------------------------------------------------------------

    async def _pursue(self, wanted: Wanted) -> set[TopicPartition]:
        """Write what is wanted, then wait for it or complete it; answers what could be written."""
        services = self._services
        if not wanted:
            return set()
        batch = services.batch()
        before = {tp: services.context.replicas(tp) for tp in wanted}
        standing = await self._write(wanted)  # U1
        services.context.assign({tp: wanted[tp] for tp in standing})  # U2
        batch.update_metadata(standing)
        await self._remove(  # U3
            {
                tp: (set(before[tp]) - set(wanted[tp].replicas)) | self._leaving(tp)
                for tp in standing
            },
            batch,
        )
        stateless = [tp for tp in standing if tp not in services.context.states]
        await services.machine.settle(stateless, batch)
        done = [tp for tp in standing if self._is_complete(tp)]
        await self._await_targets([tp for tp in standing if tp not in done], batch)  # A
        await self._complete(done, batch)  # B
        return set(standing)

    async def _await_targets(self, tps: list[TopicPartition], batch: RequestBatch) -> None:
        """A1 and A2: all replicas hear of each other, under a new epoch.

        One that was to come may have led until it was taken back: another has to, lest nobody
        catches up.
        """
        await self._services.machine.settle(tps, batch)
        await self._services.machine.next_epoch(tps, batch)
        for tp in tps:
            now = self._services.context.assignment(tp)
            batch.leader_and_isr(tp, now.adding, is_new=True)
            log.info(
                "%s-%d: replicas become %s; adding %s, removing %s",
                *tp, list(now.target), list(now.adding), list(now.removing),
            )  # fmt: skip

    async def _complete(self, tps: list[TopicPartition], batch: RequestBatch) -> None:
        """B: leaders from among the new replicas, the others out of the ISR and deleted.

        The old replicas are named in ZooKeeper until all others have been told.
        """
        services = self._services
        leaving = {tp: services.context.assignment(tp).removing for tp in tps}
        done = {tp: services.context.assignment(tp).done() for tp in tps}
        services.context.assign(done)  # B2
        await services.machine.lead_in_target(tps, batch)  # B3
        await self._remove(leaving, batch)  # B4, B5
        services.send(batch)
        if not done:
            return
        await self._write(done)  # B6
        await self._nodes.forget_reassignments(  # B7
            lambda tp, target: tp in done and target == done[tp].replicas
        )
        for tp, one in done.items():
            log.info("%s-%d: replicas are %s", *tp, list(one.replicas))

    async def _remove(
        self, leaving: Mapping[TopicPartition, Iterable[int]], batch: RequestBatch
    ) -> None:
        """Out of the ISR, then off the disk; a broker that is away keeps its files."""
        leaving = {tp: sorted(brokers) for tp, brokers in leaving.items()}
        await self._services.machine.leave_isr(leaving, batch)
        for tp, brokers in leaving.items():
            for broker in brokers:
                batch.stop_replica(broker, tp, delete=True)

    async def _write(self, wanted: Wanted) -> list[TopicPartition]:
        """Into `/brokers/topics`; answers the partitions whose topics stand there still."""
        standing = []
        for topic, assignments in by_topic(wanted).items():
            if await self._write_topic(topic, assignments):
                standing += [(topic, partition) for partition in assignments]
        return standing

    async def _write_topic(self, topic: str, assignments: Mapping[int, ReplicaAssignment]) -> bool:
        topic_id = self._services.context.topics[topic].topic_id

        def change(found: TopicAssignment) -> TopicAssignment:
            if found.topic_id not in (None, topic_id):
                return found  # made anew meanwhile: not ours to change
            return with_assignments(replace(found, topic_id=topic_id), assignments)

        written = await self._services.store.change_topic(topic, change)
        return written is not None and written.topic_id == topic_id
