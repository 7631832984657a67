"""Reassignments (KIP-455): from the request to the deletion of the last old replica.

`/brokers/topics/<t>` has the adding and removing replicas from the first write to the last, so that
the next controller can continue after any step.
Source: `KafkaController.onPartitionReassignment` (the letters are those of its phases).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from urteil.broker.base.offload import yield_items
from urteil.broker.controller.admin_znodes import AdminZnodes
from urteil.broker.controller.api_error import NO_PARTITION, ApiError
from urteil.broker.controller.replica_assignment import (
    ReplicaAssignment,
    by_topic,
    find_target_error,
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
    """Called by the event handlers of one term."""

    def __init__(self, services: Services, znodes: AdminZnodes) -> None:
        self._services = services
        self._znodes = znodes

    async def alter(
        self, requested: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, ApiError | None]:
        """Begin, replace or (target None) cancel; returns the error of each partition, if any.

        A request of an old tool for these partitions is deleted: the newest request counts.
        """
        results: dict[TopicPartition, ApiError | None] = {}
        targets: Wanted = {}
        async for tp, target in yield_items(requested.items()):
            evaluated = self._evaluate(tp, target)
            if isinstance(evaluated, ReplicaAssignment):
                targets[tp] = evaluated
            results[tp] = evaluated if isinstance(evaluated, ApiError) else None
        await self._znodes.delete_reassignments(lambda tp, _: tp in targets)
        for tp in targets.keys() - (await self._advance(targets)):
            results[tp] = NO_PARTITION
        return results

    def _evaluate(
        self, tp: TopicPartition, target: Sequence[int] | None, *, alive: bool = True
    ) -> ReplicaAssignment | ApiError:
        """The assignment to write, or the error. `alive`: new replicas must be live."""
        context = self._services.context
        now = context.assignment(tp)
        if target is None and not now.is_under_way:
            return NOTHING_TO_CANCEL
        replicas = now.origin if target is None else target
        state = context.states.get(tp)
        live = context.live_brokers if alive else frozenset(replicas)
        problem = find_target_error(now, replicas, live, state.isr if state else ())
        if problem is not None:
            return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        if not now.replicas or context.is_deletion_requested(tp[0]):
            return NO_PARTITION
        return now.to(replicas)

    async def process_znode(self, watch: Watch) -> set[TopicPartition]:
        """Begin what old tools request in `/admin/reassign_partitions`; returns the partitions.

        The targets need not be live. A reassignment under way stays in the znode and continues.
        """
        context = self._services.context
        targets, rejected = {}, set()
        for tp, target in (await self._znodes.reassignments(watch)).items():
            evaluated = self._evaluate(tp, target, alive=False)
            if isinstance(evaluated, ApiError):
                log.warning("reassignment of %s-%d: %s", *tp, evaluated.message)
                rejected.add(tp)
            elif not evaluated.is_under_way or evaluated != context.assignment(tp):
                targets[tp] = evaluated
        taken = await self._advance(targets)
        rejected |= targets.keys() - taken
        if rejected:
            await self._znodes.delete_reassignments(lambda tp, _: tp in rejected)
        return taken

    async def resume(
        self,
        without: Collection[TopicPartition] = (),
        *,
        on: Collection[int] | None = None,
    ) -> None:
        """Continue the reassignments under way: all, or those with targets `on` these brokers.

        This includes partitions whose previous controller died before it shrank the ISR.
        """
        context = self._services.context
        tps = [
            *context.partitions_under_reassignment(),
            *(tp for tp in context.partitions() if self._leaving_replicas(tp)),
        ]
        under_way = {tp: context.assignment(tp) for tp in tps}
        await self._advance(
            {
                tp: reassignment
                for tp, reassignment in under_way.items()
                if tp not in without and (on is None or not set(on).isdisjoint(reassignment.target))
            }
        )

    async def finish(self) -> None:
        """Complete the reassignments whose targets are all in sync."""
        await self._advance(
            {tp: self._services.context.assignment(tp) for tp in self.completable()}
        )

    def completable(self) -> list[TopicPartition]:
        """Partitions under reassignment whose targets are all in sync."""
        return [
            tp
            for tp in self._services.context.partitions_under_reassignment()
            if self._is_complete(tp)
        ]

    def _is_complete(self, tp: TopicPartition) -> bool:
        context = self._services.context
        state = context.states.get(tp)
        isr = state.isr if state is not None else ()
        return context.assignment(tp).is_complete(isr, context.live_for(tp))

    def _leaving_replicas(self, tp: TopicPartition) -> set[int]:
        """ISR members that are not replicas any more; empty if no replica is in sync."""
        context = self._services.context
        state, replicas = context.states.get(tp), set(context.replicas(tp))
        isr = set(state.isr) if state is not None else set()
        return isr - replicas if isr & replicas else set()

    # -- the phases -----------------------------------------------------------------------------

    async def _advance(self, targets: Wanted) -> set[TopicPartition]:
        """Write the assignments, then wait for targets or complete; returns the written ones."""
        services = self._services
        if not targets:
            return set()
        batch = services.batch()
        before = {tp: services.context.replicas(tp) for tp in targets}
        written_tps = await self._write(targets)  # U1
        services.context.assign({tp: targets[tp] for tp in written_tps})  # U2
        batch.update_metadata(written_tps)
        await self._remove(  # U3
            {
                tp: (set(before[tp]) - set(targets[tp].replicas)) | self._leaving_replicas(tp)
                for tp in written_tps
            },
            batch,
        )
        stateless = [tp for tp in written_tps if tp not in services.context.states]
        await services.machine.settle(stateless, batch)
        done = [tp for tp in written_tps if self._is_complete(tp)]
        await self._await_targets([tp for tp in written_tps if tp not in done], batch)  # A
        await self._complete(done, batch)  # B
        return set(written_tps)

    async def _await_targets(self, tps: list[TopicPartition], batch: RequestBatch) -> None:
        """A1 and A2: announce all replicas to each other, in a new epoch.

        A cancelled target may have been the leader; then another replica is elected first, so that
        the targets can catch up.
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
        """B: elect leaders among the new replicas, take the old ones out of the ISR, delete them.

        ZooKeeper lists the old replicas until the brokers have been informed.
        """
        services = self._services
        leaving = {tp: services.context.assignment(tp).removing for tp in tps}
        done = {tp: services.context.assignment(tp).complete() for tp in tps}
        services.context.assign(done)  # B2
        await services.machine.lead_in_target(tps, batch)  # B3
        await self._remove(leaving, batch)  # B4, B5
        services.send(batch)
        if not done:
            return
        await self._write(done)  # B6
        await self._znodes.delete_reassignments(  # B7
            lambda tp, target: tp in done and target == done[tp].replicas
        )
        for tp, reassignment in done.items():
            log.info("%s-%d: replicas are %s", *tp, list(reassignment.replicas))

    async def _remove(
        self, leaving: Mapping[TopicPartition, Iterable[int]], batch: RequestBatch
    ) -> None:
        """Remove replicas from the ISR, then delete them; an absent broker keeps its files."""
        leaving = {tp: sorted(brokers) for tp, brokers in leaving.items()}
        await self._services.machine.leave_isr(leaving, batch)
        for tp, brokers in leaving.items():
            for broker in brokers:
                batch.stop_replica(broker, tp, delete=True)

    async def _write(self, targets: Wanted) -> list[TopicPartition]:
        """Write to `/brokers/topics`; returns the partitions whose topics still exist."""
        written_tps = []
        for topic, assignments in by_topic(targets).items():
            if await self._write_topic(topic, assignments):
                written_tps += [(topic, partition) for partition in assignments]
        return written_tps

    async def _write_topic(self, topic: str, assignments: Mapping[int, ReplicaAssignment]) -> bool:
        topic_id = self._services.context.topics[topic].topic_id

        def change(assignment: TopicAssignment) -> TopicAssignment:
            if assignment.topic_id not in (None, topic_id):
                return assignment  # created anew meanwhile: another topic
            return with_assignments(replace(assignment, topic_id=topic_id), assignments)

        written = await self._services.store.change_topic(topic, change)
        return written is not None and written.topic_id == topic_id
