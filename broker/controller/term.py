"""One term: every event from the election to the resignation, in order.

The controller's queue runs one public method at a time. Plain functions decide from the context;
a decision is written to ZooKeeper first, then recorded in the context, then sent to the brokers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from urteil.broker.base.offload import yield_items
from urteil.broker.controller import isr_changes
from urteil.broker.controller.admin_znodes import AdminZnodes
from urteil.broker.controller.api_error import ApiError
from urteil.broker.controller.controller_context import NO_LEADER, ControllerContext
from urteil.broker.controller.election_counters import Elections
from urteil.broker.controller.log_dir_events import LogDirEvents
from urteil.broker.controller.metadata_store import MetadataStore
from urteil.broker.controller.partition_state_machine import PartitionStateMachine
from urteil.broker.controller.reassignments import Reassignments
from urteil.broker.controller.replica_assignment import ReplicaAssignment
from urteil.broker.controller.request_batch import Request
from urteil.broker.controller.request_senders import RequestChannel, RequestSenders
from urteil.broker.controller.requested_elections import ElectionOutcomes, RequestedElections
from urteil.broker.controller.services import Services
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.topic_deletion import TopicDeletion
from urteil.broker.controller.topic_loading import TopicLoading
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
)
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.entity_configs import EntityConfigs
from urteil.broker.zookeeper.producer_ids import take_block
from urteil.broker.zookeeper.registration import read_brokers
from urteil.broker.zookeeper.session import Session
from urteil.broker.zookeeper.znodes import BrokerInfo

log = logging.getLogger("controller")

Later = Callable[[Callable[["Term"], Any]], None]
"""Puts a method of the term into the controller's queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermOptions:
    """The settings of the broker that a term uses."""

    listener: str
    request_timeout_ms: float
    unclean_by_default: Callable[[], bool]
    deletion_enabled: bool
    make_topic_id: Callable[[], UUID]


class Term:
    """Owns the context; `close` ends the term at once, even within a method."""

    def __init__(
        self,
        context: ControllerContext,
        zk: Session,
        configs: EntityConfigs,
        channels: RequestChannel,
        options: TermOptions,
        later: Later,
        suspect: Callable[[], None],
        elections: Elections,
    ) -> None:
        """`suspect` is called when a broker answers that it has seen a newer controller."""
        self.context = context
        self._zk = zk
        self._options = options
        self._later = later
        self._suspect = suspect
        self._elections = elections
        self._store = MetadataStore(zk, context.epoch, context.epoch_version)
        self._machine = PartitionStateMachine(
            context,
            self._store,
            configs,
            elections,
            unclean_by_default=options.unclean_by_default,
        )
        self.senders = RequestSenders(
            channels, options.listener, options.request_timeout_ms, self._handle_response
        )
        self._services = Services(
            context, self._store, self._machine, self.senders, options.listener
        )
        znodes_of_requests = AdminZnodes(zk, self._store)
        self._deletion = TopicDeletion(self._services, enabled=options.deletion_enabled)
        self._topics = TopicLoading(zk, self._services, self._deletion, options.make_topic_id)
        self._reassignments = Reassignments(self._services, znodes_of_requests)
        self._requested_elections = RequestedElections(self._services, znodes_of_requests)
        self._log_dirs = LogDirEvents(self._services, znodes_of_requests)
        self.ready = self.closed = False

    def close(self) -> None:
        self.closed = self._store.closed = True
        self.senders.close()
        self._services.progress.set()

    # Watches. Each queues the method that reads the znode and sets the watch again.

    def _on_brokers(self, _path: str) -> None:
        self._later(Term.brokers_changed)

    def _on_topics(self, _path: str) -> None:
        self._later(Term.topics_changed)

    def _on_topic(self, path: str) -> None:
        self._topics.mark_changed(path)
        self._later(Term.topics_changed)

    def _on_deletions(self, _path: str) -> None:
        self._later(Term.deletions_changed)

    def _on_reassignments(self, _path: str) -> None:
        self._later(Term.reassignments_changed)

    def _on_elections(self, _path: str) -> None:
        self._later(Term.elections_changed)

    def _on_log_dirs(self, _path: str) -> None:
        self._later(Term.log_dirs_changed)

    async def begin(self) -> None:
        """Load the cluster from ZooKeeper, then handle what happened without a controller."""
        context = self.context
        await self._log_dirs.discard(self._on_log_dirs)
        for info in await read_brokers(self._zk, self._on_brokers):
            context.brokers[info.id] = info
            self.senders.add(info)
        await self._topics.load(self._on_topics, self._on_topic)
        restarted = context.unnoticed_restarts()
        for (
            info
        ) in restarted:  # Apache Kafka's brokers cannot register before their earlier session ends
            del context.brokers[info.id]
        requested_deletions = await self._requested_deletions()
        self._services.send(self._services.batch_for_all())
        batch = self._services.batch()
        await self._machine.settle(context.partitions(), batch)
        for tp in context.partitions():
            batch.announce(tp)
        self._services.send(batch)
        taken = await self._reassignments.process_znode(self._on_reassignments)
        await self._reassignments.resume(without=taken)
        await self._deletion.start([*requested_deletions, *self._deletion.select_deletable()])
        await self._requested_elections.process_znode(self._on_elections)
        if restarted:
            await self._brokers_joined(restarted)
        self.ready = True
        log.info(
            "controller of epoch %d: %d brokers, %d topics, %d partitions",
            context.epoch,
            len(context.brokers),
            len(context.topics),
            len(context.statuses),
        )

    # Topics.

    async def topics_changed(self) -> None:
        """New topics and partitions get their first leaders."""
        added = await self._topics.load(self._on_topics, self._on_topic)
        if added:
            log.info("new partitions: %s", ", ".join(f"{topic}-{p}" for topic, p in added))
        batch = self._services.batch()
        await self._machine.settle(added, batch)
        self._services.send(batch)

    async def unclean_allowed(self, topic: str) -> None:
        """A topic's configuration now allows unclean elections."""
        if topic not in self.context.topics or topic in self.context.deleting:
            return
        batch = self._services.batch()
        await self._machine.settle(self.context.partitions_of(topic), batch)
        self._services.send(batch)
        self._check_reassignments()

    async def unclean_allowed_by_default(self) -> None:
        """This broker's default now allows unclean elections of topics without a setting."""
        batch = self._services.batch()
        await self._machine.settle(self.context.partitions(), batch)
        self._services.send(batch)
        self._check_reassignments()

    # Brokers.

    async def brokers_changed(self) -> None:
        """Compare the registered brokers with the known ones; a new czxid is a new broker."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        now = {info.id: info for info in await read_brokers(self._zk, self._on_brokers)}
        known = dict(self.context.brokers)
        left = {
            broker
            for broker in known
            if broker not in now or now[broker].epoch != known[broker].epoch
        }
        joined = [
            info for broker, info in now.items() if broker in left or info != known.get(broker)
        ]
        if left:
            await self._brokers_left(left)
        if joined:
            await self._brokers_joined(joined)
        self._elections.count_round(loop.time() - began_s)

    async def _brokers_left(self, left: set[int]) -> None:
        log.info("brokers left: %s", sorted(left))
        for broker in left:
            self.senders.remove(broker)
            del self.context.brokers[broker]
            self.context.shutting_down.discard(broker)
            self._deletion.broker_left(broker)
            self._log_dirs.broker_left(broker)
        batch, tps = self._services.batch_for_all(), self.context.partitions_on(left)
        await self._machine.settle(tps, batch)
        batch.update_metadata(tps)  # for partitions with an out-of-sync replica there, too
        self._services.send(batch)
        self._check_reassignments()

    async def _brokers_joined(self, joined: list[BrokerInfo]) -> None:
        context = self.context
        log.info("brokers joined: %s", [f"{info.id} (epoch {info.epoch})" for info in joined])
        for info in joined:
            context.brokers[info.id] = info
            self.senders.add(info)
        ids = [info.id for info in joined]
        batch = self._services.batch_for_all()
        batch.update_metadata(context.statuses, ids)
        # before LeaderAndIsr: Apache Kafka's brokers follow no leader that they do not know
        self._services.send(batch)
        batch = self._services.batch()
        await self._machine.settle(context.partitions(), batch)
        tps = context.partitions_on(ids)
        for tp in tps:
            batch.leader_and_isr(
                tp, [replica for replica in ids if replica in context.replicas(tp)]
            )
        batch.update_metadata(tps)
        self._services.send(batch)
        await self._reassignments.resume(on=ids)
        await self._delete_deletable()
        await self._deletion.resume()

    # Requests of brokers.

    async def alter_partition(
        self, request: AlterPartitionRequest, version: int
    ) -> AlterPartitionResponse:
        """Write the ISRs that a leader proposes, and announce them to all brokers."""
        context = self.context
        error = isr_changes.request_error(context, request)
        if error:
            return AlterPartitionResponse(error_code=error)
        results = isr_changes.evaluate_proposals(context, request, version)
        answers = dict(results.answers)
        batch = self._services.batch()
        for tp, written in (await self._machine.write(results.writes)).items():
            if written is None:
                answers[tp] = ErrorCode.INVALID_UPDATE_VERSION
                await self._machine.adopt_state(tp, batch)
            else:
                answers[tp] = written
                batch.update_metadata([tp])
        self._services.send(batch)
        self._check_reassignments()
        return isr_changes.build_response(context, request, version, answers)

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """Move leaders away from a broker and stop its followers; returns what it still leads."""
        context, broker = self.context, request.broker_id
        info = context.brokers.get(broker)
        if info is None:
            return ControlledShutdownResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        if request.broker_epoch not in (-1, info.epoch):
            return ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        context.shutting_down.add(broker)
        tps = [
            tp
            for tp in context.partitions_on([broker])
            if tp in context.states and len(context.replicas(tp)) > 1
        ]
        batch = self._services.batch_for_all()
        await self._machine.move_leaders_away(tps, batch)
        remaining = [tp for tp in tps if context.states[tp].leader == broker]
        for tp in tps:
            if tp not in remaining:
                batch.stop_replica(broker, tp, delete=False)
        batch.update_metadata(tps)
        self._services.send(batch)
        log.info("broker %d shuts down and still leads %d partitions", broker, len(remaining))
        return ControlledShutdownResponse(
            remaining_partitions=[
                ControlledShutdownResponse.RemainingPartition(topic_name=topic, partition_index=p)
                for topic, p in remaining
            ]
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        """A block of producer ids for a broker (`KafkaController.processAllocateProducerIds`)."""
        info = self.context.brokers.get(request.broker_id)
        if info is None:
            return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
        if info.epoch != request.broker_epoch:
            return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        first, last = await take_block(self._zk, request.broker_id)
        return AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=last - first + 1
        )

    async def rebalance_leaders(self, imbalance_percent: int) -> None:
        batch = self._services.batch()
        await self._machine.rebalance(imbalance_percent, batch)
        self._services.send(batch)

    # Requests of administrators.

    async def alter_reassignments(
        self, asked: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, ApiError | None]:
        """See `Reassignments.alter`."""
        results = await self._reassignments.alter(asked)
        await self._delete_deletable()
        return results

    async def reassignments(
        self, asked: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """The reassignments under way among the given partitions (None: all)."""
        context = self.context
        under_way = {tp: context.assignment(tp) for tp in context.partitions_under_reassignment()}
        if asked is None:
            return under_way
        return {tp: under_way[tp] async for tp in yield_items(asked) if tp in under_way}

    def _check_reassignments(self) -> None:
        """Queue the completion of reassignments whose targets are in sync after an ISR change."""
        if self._reassignments.completable():
            self._later(Term.finish_reassignments)

    async def finish_reassignments(self) -> None:
        """Complete the reassignments whose targets are in sync."""
        await self._reassignments.finish()
        await self._delete_deletable()

    async def reassignments_changed(self) -> None:
        await self._reassignments.process_znode(self._on_reassignments)
        await self._delete_deletable()

    async def elect_leaders(
        self, asked: Iterable[TopicPartition] | None, *, unclean: bool
    ) -> ElectionOutcomes:
        """See `RequestedElections.elect`."""
        outcomes = await self._requested_elections.elect(asked, unclean=unclean)
        self._check_reassignments()
        return outcomes

    async def elections_changed(self) -> None:
        await self._requested_elections.process_znode(self._on_elections)

    async def log_dirs_changed(self) -> None:
        await self._log_dirs.process_znodes(self._on_log_dirs)

    async def replicas_lost(self) -> None:
        """Handle replicas that went offline or restarted back online, by the answers of brokers."""
        await self._log_dirs.settle()
        self._check_reassignments()

    # Deletion of topics.

    async def deletions_changed(self) -> None:
        await self._deletion.start(await self._requested_deletions())

    async def _requested_deletions(self) -> list[str]:
        """Register the requests in ZooKeeper; returns the topics to delete now."""
        names = await self._zk.children(znodes.DELETE_TOPICS, self._on_deletions)
        if set(names) - set(self.context.topics):
            await self.topics_changed()  # a new topic may not be loaded yet
        await self._deletion.register(names)
        return self._deletion.select_deletable()

    async def _delete_deletable(self) -> None:
        """Delete topics whose deletion waited for a reassignment."""
        deletable = self._deletion.select_deletable()
        if deletable:
            await self._deletion.start(deletable)

    async def resume_deletions(self) -> None:
        await self._deletion.resume()

    # Requests and their answers.

    def _handle_response(self, broker: int, request: Request, response: Any) -> None:
        error = ErrorCode(response.error_code)
        if error:
            name = type(request).__name__
            log.warning("%s: broker %d answered %s", name, broker, error.name)
        if error is ErrorCode.STALE_CONTROLLER_EPOCH:
            self._suspect()
        if isinstance(request, StopReplicaRequest):
            if self._deletion.handle_response(broker, request, response):
                self._later(Term.resume_deletions)
        elif isinstance(request, LeaderAndIsrRequest):
            _log_partition_errors(broker, response)
            if self._log_dirs.handle_response(broker, response):
                self._later(Term.replicas_lost)
        self._services.progress.set()

    # Conditions of requests that wait.

    async def progress(self) -> None:
        """Wait for the next change; the caller then checks its condition again."""
        self._services.progress.clear()
        await self._services.progress.wait()

    def has_leaders(self, topic: str, partitions: int = 0) -> bool:
        """Whether a topic has at least `partitions` partitions, and each has a leader."""
        assignment = self.context.topics.get(topic)
        return (
            assignment is not None
            and len(assignment.partitions) >= partitions
            and all(self._has_leader((topic, partition)) for partition in assignment.partitions)
        )

    def _has_leader(self, tp: TopicPartition) -> bool:
        state = self.context.states.get(tp)
        return state is not None and state.leader != NO_LEADER

    def is_deleted(self, topic: str) -> bool:
        """Whether a topic is deleted, or its deletion waits for absent brokers only."""
        return topic not in self.context.topics or self._deletion.is_waiting_for_brokers(topic)


def _log_partition_errors(broker: int, response: Any) -> None:
    """Log errors of single partitions; the next change of a partition sends it again."""
    failed = [
        f"{topic.topic_id} {partition.partition_index}: {ErrorCode(partition.error_code).name}"
        for topic in response.topics
        for partition in topic.partition_errors
        if partition.error_code
    ]
    if failed:
        log.warning("LeaderAndIsr: broker %d answered %s", broker, ", ".join(failed))
