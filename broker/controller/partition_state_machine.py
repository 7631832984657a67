"""Brings partitions to the best state that the registered brokers allow, through ZooKeeper.

Kafka's `PartitionStateMachine` and `ReplicaStateMachine` in one. The next state follows from the
present state and the brokers, not from the event, so any event may examine any partition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from urteil.broker.controller import leader_selection
from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.election_counters import Elections
from urteil.broker.controller.metadata_store import MetadataStore
from urteil.broker.controller.request_batch import RequestBatch
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.zookeeper.entity_configs import EntityConfigs
from urteil.broker.zookeeper.znodes import PartitionState

log = logging.getLogger("controller")

Decide = Callable[[TopicPartition], PartitionState | None]


class PartitionStateMachine:
    """Decides by `leader_selection`, writes to the store, records the result in the context."""

    def __init__(
        self,
        context: ControllerContext,
        store: MetadataStore,
        configs: EntityConfigs,
        elections_held: Elections,
        *,
        unclean_by_default: Callable[[], bool],
    ) -> None:
        self._context = context
        self._store = store
        self._configs = configs
        self._elections_held = elections_held
        self._unclean_by_default = unclean_by_default

    async def settle(self, tps: Iterable[TopicPartition], batch: RequestBatch) -> None:
        """First states for new partitions; elections and smaller ISRs for the others."""
        tps = list(tps)
        new = [tp for tp in tps if tp not in self._context.states]
        await self._create(new, batch)
        old = [tp for tp in tps if tp in self._context.states]
        while old:
            unclean = await self._unclean_topics(old)
            old = await self._change(old, partial(self._after_failure, unclean=unclean), batch)

    async def move_leaders_away(self, tps: Iterable[TopicPartition], batch: RequestBatch) -> None:
        """Move leaders and ISR members away from brokers that are shutting down."""
        await self.change(tps, self._for_shutdown, batch)

    async def next_epoch(self, tps: Iterable[TopicPartition], batch: RequestBatch) -> None:
        """Keep the leaders in new epochs, so that replicas accept the new replica list."""
        epoch, states = self._context.epoch, self._context.states
        await self.change(tps, lambda tp: leader_selection.next_epoch(states[tp], epoch), batch)

    async def lead_in_target(self, tps: Iterable[TopicPartition], batch: RequestBatch) -> None:
        """After a reassignment: leaders among the new replicas, always in a new epoch."""
        await self.change(tps, self._for_reassignment, batch)

    async def leave_isr(
        self, leaving: Mapping[TopicPartition, Iterable[int]], batch: RequestBatch
    ) -> None:
        """Remove leaving replicas from the ISRs one by one, as Apache Kafka does: clients see an
        epoch for each."""
        by_broker: dict[int, list[TopicPartition]] = {}
        for tp, brokers in leaving.items():
            for broker in brokers:
                by_broker.setdefault(broker, []).append(tp)
        for broker, tps in by_broker.items():
            await self.change(tps, partial(self._without_replica, replica=broker), batch)

    async def elect(
        self, tps: Iterable[TopicPartition], batch: RequestBatch, *, unclean: bool
    ) -> None:
        """Elections on request: the preferred leaders or, if unclean, any live replica."""
        await self.change(tps, self._by_request if unclean else self._to_preferred, batch)

    async def change(
        self, tps: Iterable[TopicPartition], decide: Decide, batch: RequestBatch
    ) -> None:
        """Decide and write; repeat for partitions that changed meanwhile. Partitions without a
        state are skipped."""
        pending = [tp for tp in tps if tp in self._context.states]
        while pending:
            pending = await self._change(pending, decide, batch)

    async def rebalance(self, imbalance_percent: int, batch: RequestBatch) -> None:
        """Move leaders to preferred replicas of brokers that lead too few of theirs; not during a
        reassignment."""
        context = self._context
        if context.partitions_under_reassignment():
            return
        by_preferred: dict[int, list[TopicPartition]] = {}
        for tp in context.partitions():
            if tp in context.states:
                by_preferred.setdefault(context.replicas(tp)[0], []).append(tp)
        for broker, tps in by_preferred.items():
            away = [tp for tp in tps if context.states[tp].leader != broker]
            if len(away) * 100 > imbalance_percent * len(tps):
                await self._change(away, self._to_preferred, batch)

    async def adopt_state(self, tp: TopicPartition, batch: RequestBatch) -> bool:
        """Adopt the state that ZooKeeper has instead of the known one; False if it is no other."""
        standing = await self._store.read_state(tp)
        if standing is None or standing == self._context.states[tp]:
            log.warning("%s-%d: its state cannot be written: %s", *tp, standing)
            return False
        log.warning("%s-%d: adopted the state in ZooKeeper: %s", *tp, standing)
        self._context.record(tp, standing)
        batch.announce(tp)
        return True

    def allows_unclean(self, overrides: Mapping[str, str]) -> bool:
        """Whether the topic's setting, or else the broker's, allows unclean elections."""
        value = overrides.get("unclean.leader.election.enable")
        return self._unclean_by_default() if value is None else value.strip().lower() == "true"

    async def write(
        self, states: Mapping[TopicPartition, PartitionState]
    ) -> dict[TopicPartition, PartitionState | None]:
        """Write states and record the written ones (None: ZooKeeper had another version)."""
        results = await self._store.update_states(states)
        for tp, written in results.items():
            if written is not None:
                known = self._context.states[tp]
                _log_change(tp, known, written)
                self._elections_held.unclean += _is_unclean(known, written)
                self._context.record(tp, written)
        return results

    async def _create(self, tps: list[TopicPartition], batch: RequestBatch) -> None:
        context = self._context
        states_to_create = {}
        for tp in tps:
            live = context.live_for(tp)
            state = leader_selection.first_state(context.replicas(tp), live, context.epoch)
            if state is None:
                log.warning("%s-%d: no replica is alive", *tp)
            else:
                states_to_create[tp] = state
        for tp, standing in (await self._store.create_states(states_to_create)).items():
            if standing is not None:
                context.record(tp, standing)
                batch.announce(tp, is_new=standing == states_to_create[tp])

    async def _change(
        self, tps: Iterable[TopicPartition], decide: Decide, batch: RequestBatch
    ) -> list[TopicPartition]:
        """One round of decisions; returns the partitions to decide again."""
        decided = {tp: decide(tp) for tp in tps}
        states = {tp: state for tp, state in decided.items() if state is not None}
        again = []
        for tp, written in (await self.write(states)).items():
            if written is not None:
                batch.announce(tp)
            elif await self.adopt_state(tp, batch):
                again.append(tp)
        return again

    def _without_replica(self, tp: TopicPartition, replica: int) -> PartitionState | None:
        state = self._context.states[tp]
        return leader_selection.without_replica(state, replica, self._context.epoch)

    def _after_failure(self, tp: TopicPartition, unclean: set[str]) -> PartitionState | None:
        return leader_selection.after_failure(
            self._context.states[tp],
            self._context.replicas(tp),
            present=self._context.present_for(tp),
            live=self._context.live_for(tp),
            unclean=tp[0] in unclean,
            controller_epoch=self._context.epoch,
        )

    def _for_shutdown(self, tp: TopicPartition) -> PartitionState | None:
        context = self._context
        return leader_selection.for_shutdown(
            context.states[tp], context.replicas(tp), context.live_for(tp), context.epoch
        )

    def _for_reassignment(self, tp: TopicPartition) -> PartitionState | None:
        context = self._context
        return leader_selection.for_reassignment(
            context.states[tp], context.assignment(tp).target, context.live_for(tp), context.epoch
        )

    def _by_request(self, tp: TopicPartition) -> PartitionState | None:
        context = self._context
        return leader_selection.by_request(
            context.states[tp], context.replicas(tp), context.live_for(tp), context.epoch
        )

    def _to_preferred(self, tp: TopicPartition) -> PartitionState | None:
        context = self._context
        return leader_selection.to_preferred(
            context.states[tp], context.replicas(tp), context.live_for(tp), context.epoch
        )

    async def _unclean_topics(self, tps: Iterable[TopicPartition]) -> set[str]:
        """Topics that need and allow an unclean election; only their settings are read."""
        context = self._context
        needing = dict.fromkeys(
            tp[0]
            for tp in tps
            if leader_selection.needs_unclean(
                context.states[tp],
                context.replicas(tp),
                context.present_for(tp),
                context.live_for(tp),
            )
        )
        overrides = await self._configs.overrides_of(list(needing))
        return {topic for topic in needing if self.allows_unclean(overrides[topic])}


def _is_unclean(old: PartitionState, new: PartitionState) -> bool:
    return new.recovery_state == leader_selection.RECOVERING and new.leader not in old.isr


def _log_change(tp: TopicPartition, old: PartitionState, new: PartitionState) -> None:
    log.info(
        "%s-%d: leader %d -> %d epoch %d isr %s -> %s%s",
        *tp,
        old.leader,
        new.leader,
        new.leader_epoch,
        list(old.isr),
        list(new.isr),
        " UNCLEAN" if new.recovery_state and not old.recovery_state else "",
    )
