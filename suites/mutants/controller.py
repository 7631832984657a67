"""The controller's term: topics, replicas, reassignments and requests to brokers."""

from __future__ import annotations

import dataclasses
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace

TERM = "urteil.broker.controller.term:Term"


class _Silent:
    """Services whose batches ignore changes of partitions."""

    def __init__(self, services: Any, mark: Mark) -> None:
        self._services, self._mark = services, mark

    def batch(self) -> Any:
        batch, mark = self._services.batch(), self._mark
        batch.update_metadata = lambda _tps: mark.hit()
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._services, name)


@mutant(
    about="the watch on /brokers/ids is not set again after a broker left, nor by a later "
    "controller",
    models="a watch that fires once and is not set again",
    scenario="leader-crash",
    guarantee="slow_recovery",
)
def watch_not_rearmed(mark: Mark) -> None:
    """Ignores the watch after a broker left, and under any but the first controller."""
    deaf: set[int] = set()

    def make_on_brokers(original: Function) -> Function:
        def on_brokers(term: Any, _path: str) -> None:
            if term.context.epoch > 1 or id(term) in deaf:
                mark.hit()
            else:
                original(term, _path)

        return on_brokers

    def make_left(original: Function) -> Function:
        async def brokers_left(term: Any, gone: Any) -> None:
            await original(term, gone)
            deaf.add(id(term))

        return brokers_left

    replace(f"{TERM}._on_brokers", make_on_brokers)
    replace(f"{TERM}._brokers_left", make_left)


@mutant(
    about="a reassignment completes at once: new replicas lead before they are in sync",
    models="KIP-455: old replicas removed before the new ones are in the ISR",
    scenario="reassign-sole",
    guarantee="lost_write",
    mix="administration",
)
def reassigned_at_once(mark: Mark) -> None:
    """Counts all target replicas as in sync and elects the first new one."""
    from dataclasses import replace as changed

    def make_complete(original: Function) -> Function:
        def is_complete(assignment: Any, isr: Any, live: Any) -> bool:
            return True

        return is_complete

    def make_election(original: Function) -> Function:
        def for_reassignment(state: Any, target: Any, live: Any, controller_epoch: int) -> Any:
            if not set(target) <= set(state.isr):
                mark.hit()
                state = changed(state, isr=tuple(target))
            return original(state, target, live, controller_epoch)

        return for_reassignment

    replace(
        "urteil.broker.controller.replica_assignment:ReplicaAssignment.is_complete", make_complete
    )
    replace("urteil.broker.controller.leader_selection:for_reassignment", make_election)


@mutant(
    about="a new controller does not resume the topic deletions of its predecessor",
    models="topics marked for deletion that no controller deletes",
    scenario="office-lost",
    guarantee="unfinished_administration",
    mix="administration",
)
def topic_deletion_not_resumed(mark: Mark) -> None:
    """Counts deletions that an earlier controller accepted as already started."""

    def make(original: Function) -> Function:
        async def replacement(term: Any) -> Any:
            deletable = await original(term)
            if term.ready or not deletable:
                return deletable
            mark.hit()
            return []

        return replacement

    replace("urteil.broker.controller.term:Term._requested_deletions", make)


@mutant(
    about="a new controller does not continue the reassignments of its predecessor",
    models="a reassignment that is stuck after a controller failover",
    scenario="office-lost",
    guarantee="unfinished_administration",
    mix="administration",
)
def reassignment_forgotten(mark: Mark) -> None:
    """Drops the adding and removing replicas that the controller loads."""

    def make(original: Function) -> Function:
        async def load(loading: Any, *watches: Any) -> Any:
            topics = loading._services.context.topics
            is_first = not topics
            added = await original(loading, *watches)
            for name, topic in topics.items():
                if is_first and (topic.adding or topic.removing):
                    mark.hit()
                    topics[name] = dataclasses.replace(topic, adding={}, removing={})
            return added

        return load

    replace("urteil.broker.controller.topic_loading:TopicLoading.load", make)


@mutant(
    about="the controller gives every broker the same block of producer ids",
    models="a block that is allocated without an update of /latest_producer_id_block",
    scenario="indexes",
    guarantee="sequence_gap",
)
def producer_ids_reused(mark: Mark) -> None:
    """Returns the first block of producer ids each time."""

    def make(original: Function) -> Function:
        async def take_block(zk: Any, broker_id: int) -> tuple[int, int]:
            first, last = await original(zk, broker_id)
            if first:
                mark.hit()
            return 0, last - first

        return take_block

    replace("urteil.broker.controller.term:take_block", make)


@mutant(
    about="the cancellation of a reassignment is acknowledged, and the reassignment continues",
    models="a null target treated as the current target",
    scenario="reassign-cancelled",
    guarantee="unfinished_administration",
    mix="administration",
)
def cancellation_ignored(mark: Mark) -> None:
    """Replaces the cancellation by the target of the reassignment under way."""

    def make(original: Function) -> Function:
        def judge(reassignments: Any, tp: Any, target: Any, **kwargs: Any) -> Any:
            now = reassignments._services.context.assignment(tp)
            if target is None and now.is_under_way:
                mark.hit()
                return now
            return original(reassignments, tp, target, **kwargs)

        return judge

    replace("urteil.broker.controller.reassignments:Reassignments._evaluate", make)


@mutant(
    about="a broker that joins gets no metadata of partitions that it has no replica of",
    models="the controller's first UpdateMetadata that is not sent",
    scenario="indexes",
    guarantee="disagreement",
    unsimulated="a broker that returns joins every ISR, and receives metadata for that",
)
def returned_broker_without_metadata(mark: Mark) -> None:
    """Omits the full UpdateMetadata to a broker that joins."""

    def make(original: Function) -> Function:
        def update_metadata(batch: Any, tps: Any, brokers: Any = None) -> None:
            if brokers is None:
                original(batch, tps)
            else:
                mark.hit()

        return update_metadata

    replace("urteil.broker.controller.request_batch:RequestBatch.update_metadata", make)


@mutant(
    about="auto.leader.rebalance.enable has no effect",
    models="a scheduled task that an error ended",
    scenario="early-return",
    guarantee="preferred_leader_ignored",
    mix="administration",
)
def no_leader_rebalance(mark: Mark) -> None:
    """Skips the rebalance of leaders."""

    def make(original: Function) -> Function:
        async def rebalance_leaders(term: Any, imbalance_percent: int) -> None:
            mark.hit()

        return rebalance_leaders

    replace("urteil.broker.controller.term:Term.rebalance_leaders", make)


@mutant(
    about="a controlled shutdown moves no leader",
    models="a controlled shutdown that is answered before its work is done",
    scenario="rolling-restart",
    guarantee="leadership_not_handed_over",
    mix="replication",
)
def shutdown_not_controlled(mark: Mark) -> None:
    """Answers ControlledShutdown without moving a leader."""

    def make(original: Function) -> Function:
        async def controlled_shutdown(term: Any, request: Any) -> Any:
            from urteil.broker.wire.messages import ControlledShutdownResponse

            mark.hit()
            return ControlledShutdownResponse(remaining_partitions=[])

        return controlled_shutdown

    replace("urteil.broker.controller.term:Term.controlled_shutdown", make)


@mutant(
    about="CreatePartitions ignores the requested replica assignment",
    models="a manual assignment that is lost",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def manual_assignment_ignored(mark: Mark) -> None:
    """Discards the assignments of a CreatePartitions request."""

    def make(original: Function) -> Function:
        def new_partitions(name: str, topic: Any, count: int, replicas: Any, racks: Any) -> Any:
            if replicas is not None:
                mark.hit()
            return original(name, topic, count, None, racks)

        return new_partitions

    replace("urteil.broker.controller.topic_admin:new_partitions", make)


@mutant(
    about="the controller does not send ISR changes to the other brokers",
    models="KIP-497: AlterPartition without an UpdateMetadata after it",
    scenario="indexes",
    guarantee="disagreement",
)
def isr_changes_not_broadcast(mark: Mark) -> None:
    """Omits partitions whose ISR changed from UpdateMetadata."""

    def make(original: Function) -> Function:
        async def alter(term: Any, *args: Any, **kwargs: Any) -> Any:
            services = term._services
            term._services = _Silent(services, mark)
            try:
                return await original(term, *args, **kwargs)
            finally:
                term._services = services

        return alter

    replace("urteil.broker.controller.term:Term.alter_partition", make)


@mutant(
    about="__consumer_offsets has the default cleanup policy: old offsets expire with their "
    "segments",
    models="an internal topic created with the defaults of topics",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def positions_expire_with_their_log(mark: Mark) -> None:
    """Creates __consumer_offsets without cleanup.policy=compact."""
    from dataclasses import replace as changed

    def make(original: Function) -> Function:
        def automatic(name: str, config: Any) -> Any:
            topic = original(name, config)
            if name != "__consumer_offsets":
                return topic
            mark.hit()
            kept = tuple(config for config in topic.configs if config[0] != "cleanup.policy")
            return changed(topic, configs=kept)

        return automatic

    replace("urteil.broker.controller.topic_requests:_auto_created_topic", make)


@mutant(
    about="the transaction log accepts decisions that only one broker has",
    models="transaction.state.log.min.isr that is ignored",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def txn_log_min_isr_one(mark: Mark) -> None:
    """Creates __transaction_state with min.insync.replicas=1."""
    from dataclasses import replace as changed

    def make(original: Function) -> Function:
        def automatic(name: str, config: Any) -> Any:
            topic = original(name, config)
            if name != "__transaction_state":
                return topic
            mark.hit()
            settings = dict(topic.configs) | {"min.insync.replicas": "1"}
            return changed(topic, configs=tuple(settings.items()))

        return automatic

    replace("urteil.broker.controller.topic_requests:_auto_created_topic", make)


@mutant(
    about="a leaderless partition stays so after unclean election was enabled for its topic",
    models="unclean.leader.election.enable that takes effect only with the next failure",
    scenario="unclean-allowed",
    guarantee="leaderless_partition",
    unsimulated="only the retention of a topic changes",
)
def unclean_election_change_ignored(mark: Mark) -> None:
    """Holds no election when the topic's setting changes."""

    def make(_: Function) -> Function:
        async def allow(term: Any, topic: str) -> None:
            mark.hit()

        return allow

    replace("urteil.broker.controller.term:Term.unclean_allowed", make)


@mutant(
    about="the controller elects no leader for every fifth partition of a broker that left",
    models="an election that stops at the first partition it cannot settle",
    scenario="crowded-crash",
    guarantee="leaderless_partition",
    unsimulated="topics there have few partitions",
)
def fifth_partition_passed_over(mark: Mark) -> None:
    """Decides to leave the state of partitions 4, 9 ... as it is, where their leader left."""

    def make(original: Function) -> Function:
        def after_failure(machine: Any, tp: Any, unclean: set[str]) -> Any:
            state = original(machine, tp, unclean)
            leads = machine._context.states[tp].leader
            if state is None or state.leader == leads or tp[1] % 5 != 4:
                return state
            mark.hit()
            return None

        return after_failure

    replace(
        "urteil.broker.controller.partition_state_machine:PartitionStateMachine._after_failure",
        make,
    )
