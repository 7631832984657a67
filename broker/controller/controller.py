"""The controller's shell: it stands for election and passes events to the term that it won.

Every broker runs one. Events (watches, requests, timers) enter one queue, and the term handles them
one after another. When the session expires, another controller is elected, a write is fenced or an
event fails, the term ends at once; requests in the queue are answered NOT_CONTROLLER, and the
broker stands for election again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from urteil.broker.base.clock import Clock
from urteil.broker.base.remote_time import await_remote
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.controller import partition_requests, topic_requests
from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.controller_election import ControllerElection, ElectedEpoch
from urteil.broker.controller.election_counters import Elections
from urteil.broker.controller.metadata_store import ControllerFenced
from urteil.broker.controller.mutation_quota import Take, allow_all
from urteil.broker.controller.request_senders import RequestChannel
from urteil.broker.controller.requested_elections import ElectionOutcomes
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.term import Term, TermOptions
from urteil.broker.controller.topic_admin import TopicAdmin
from urteil.broker.security.acls.acl_model import Allowed, allow_everything
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from urteil.broker.zookeeper.entity_configs import EntityConfigs
from urteil.broker.zookeeper.registration import AlreadyRegistered, Registration
from urteil.broker.zookeeper.session import LOST, Session, SessionClosed, State

log = logging.getLogger("controller")

T = TypeVar("T")
U = TypeVar("U")
Event = Callable[[], Awaitable[Any]]
FIRST_REBALANCE_S = 5.0
BACKOFF_AFTER_BUG_S = 1.0
UNCLEAN = "unclean.leader.election.enable"
NOT_CONTROLLER = "This is not the correct controller for this cluster."


class Controller:
    """Runs on every broker; `is_active` on the elected one.

    The broker makes, in this order: `Session.connect`, `create_persistent_paths`, `cluster_id`,
    its listeners, `Registration.register`, `Controller.start`. From then on the controller
    registers again after session expiry (`registration.epoch` is the broker epoch at any time).
    """

    def __init__(
        self,
        config: BrokerConfig,
        zk: Session,
        registration: Registration,
        channels: RequestChannel,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.configs = EntityConfigs(zk, clock.now_ms)
        self.admin = TopicAdmin(
            zk,
            rng,
            default_partitions=config.num_partitions,
            default_replication_factor=config.default_replication_factor,
            properties=config.properties,
        )
        self.elections = Elections()
        self._config = config
        self._zk = zk
        self._registration = registration
        self._channels = channels
        self._election = ControllerElection(zk, config.broker_id, clock.now_ms, self._on_controller)
        self._term: Term | None = None
        self._won: ElectedEpoch | None = None
        self._events: deque[Event] = deque()
        self._queued: set[object] = set()
        self._wakeup = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting_requests: dict[
            asyncio.Future[Any], Any
        ] = {}  # and the answer without a controller
        self._silence_timer: asyncio.TimerHandle | None = None

    @property
    def is_active(self) -> bool:
        return self._term is not None

    @property
    def epoch(self) -> int:
        """The controller epoch of the last election that this broker won; 0 if it won none."""
        return self._won.epoch if self._won else 0

    @property
    def term(self) -> Term | None:
        """The term once it knows the cluster."""
        return self._term if self._term is not None and self._term.ready else None

    async def start(self) -> None:
        """Watch `/controller` and stand for election."""
        self._zk.on_state(self._on_state)
        self.configs.on_change(self._on_topic_config)
        self._config.properties.subscribe(self._on_properties)
        await self.configs.start()
        self._queue_event("elect", self._elect)
        self._tasks.append(asyncio.create_task(self._run(), name="controller"))
        if self._config.auto_leader_rebalance_enable:
            self._tasks.append(asyncio.create_task(self._rebalance(), name="rebalance"))

    async def stop(self) -> None:
        """Resign and stop all tasks; before `Session.close`, which frees `/controller`."""
        self._end_term("shutdown")
        if self._silence_timer is not None:
            self._silence_timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.configs.stop()

    # Requests.

    async def auto_create(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Create topics for Metadata and FindCoordinator on any broker; does not wait for leaders.

        LEADER_NOT_AVAILABLE means that the topic was created, now or by another broker, and the
        client retries; otherwise INVALID_TOPIC_EXCEPTION or INVALID_REPLICATION_FACTOR.
        """
        return await topic_requests.auto_create(self.admin, self._config, names)

    async def alter_partition(
        self, request: AlterPartitionRequest, version: int
    ) -> AlterPartitionResponse:
        return await self._run_in_term(
            lambda term: term.alter_partition(request, version),
            AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER),
        )

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        return await self._run_in_term(
            lambda term: term.controlled_shutdown(request),
            ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER),
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        return await self._run_in_term(
            lambda term: term.allocate_producer_ids(request),
            AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER),
        )

    async def create_topics(
        self,
        request: CreateTopicsRequest,
        version: int,
        allowed: Allowed = allow_everything,
        take: Take = allow_all,
    ) -> CreateTopicsResponse:
        """Validate and write; then wait for leaders, at most `timeout_ms`."""
        await self._wait_until_loaded()
        return await topic_requests.create_topics(self, self._config, request, allowed, take)

    async def delete_topics(
        self,
        request: DeleteTopicsRequest,
        version: int,
        allowed: Allowed = allow_everything,
        take: Take = allow_all,
    ) -> DeleteTopicsResponse:
        """Write the request; then wait until the topics are deleted, at most `timeout_ms`."""
        await self._wait_until_loaded()
        return await topic_requests.delete_topics(
            self, self._config, request, version, allowed, take
        )

    async def create_partitions(
        self,
        request: CreatePartitionsRequest,
        allowed: Allowed = allow_everything,
        take: Take = allow_all,
    ) -> CreatePartitionsResponse:
        """Validate and write; then wait for leaders, at most `timeout_ms`."""
        await self._wait_until_loaded()
        return await partition_requests.create_partitions(self, request, allowed, take)

    async def elect_leaders(
        self, asked: Sequence[TopicPartition] | None, *, unclean: bool
    ) -> ElectionOutcomes | None:
        """The elected leaders, as written to ZooKeeper; None on any other broker."""
        return await self._run_in_term(
            lambda term: term.elect_leaders(asked, unclean=unclean), None
        )

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """ResponseHandler when it is noted in ZooKeeper, long before it is done."""
        asked = await partition_requests.requested_targets(request)
        results = await self._run_in_term(lambda term: term.alter_reassignments(asked), None)
        if results is None:
            return AlterPartitionReassignmentsResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER
            )
        return await partition_requests.alter_response(results)

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        asked = await partition_requests.partitions_to_list(request)
        under_way = await self._run_in_term(lambda term: term.reassignments(asked), None)
        if under_way is None:
            return ListPartitionReassignmentsResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER
            )
        return await partition_requests.list_response(under_way)

    async def _run_in_term(self, act: Callable[[Term], Awaitable[T]], not_controller: U) -> T | U:
        """Run `act` on the term in queue order; returns `not_controller` if the term ends first."""
        term = self._term
        if term is None:
            return not_controller
        future: asyncio.Future[T | U] = asyncio.get_running_loop().create_future()

        async def event() -> None:
            if self._term is not term or future.done():
                return
            answer = await act(term)
            if not future.done():
                future.set_result(answer)

        self._waiting_requests[future] = not_controller
        self._queue_event(event, event)
        try:
            return await await_remote(future)
        finally:
            self._waiting_requests.pop(future, None)

    async def _wait_until_loaded(self) -> None:
        """Wait until an elected controller has loaded the cluster; metadata names it earlier."""
        if self._term is not None and not self._term.ready:
            await self._run_in_term(_do_nothing, None)

    # The queue.

    def _queue_event(self, key: object, event: Event) -> None:
        """Queue an event unless one of this key waits already and will read the same state."""
        if key not in self._queued:
            self._queued.add(key)
            self._events.append(lambda: self._run_queued(key, event))
            self._wakeup.set()

    async def _run_queued(self, key: object, event: Event) -> None:
        self._queued.discard(key)
        await event()

    def _queue_for_term(self, method: Callable[[Term], Any]) -> None:
        async def event() -> None:
            if self._term is not None:
                await method(self._term)

        self._queue_event(method, event)

    async def _run(self) -> None:
        while True:
            await self._wakeup.wait()
            while self._events:
                await self._handle(self._events.popleft())
            self._wakeup.clear()

    async def _handle(self, event: Event) -> None:
        try:
            await event()
        except ControllerFenced as why:
            self._end_term(str(why))
            self._queue_event("elect", self._elect)
        except LOST as why:
            self._end_term(repr(why))
            self._queue_event("elect", self._elect)
        except SessionClosed:
            self._end_term("the session is closed")
        except Exception:
            # the state in memory may be wrong: load it again from ZooKeeper
            log.exception("an event failed; resigning")
            self._end_term("an event failed")
            self._queue_event("resign", self._resign)

    # Elections.

    def _on_controller(self, _path: str) -> None:
        self._queue_event("verify", self._verify)

    def _on_state(self, state: State) -> None:
        if self._silence_timer is not None:
            self._silence_timer.cancel()
            self._silence_timer = None
        if state is State.EXPIRED:
            self._end_term("the session expired")
            self._queue_event("new session", self._new_session)
        elif state is State.CONNECTED:
            self._queue_event("verify", self._verify)
        elif self._term is not None:
            # the client drops a connection that is silent for two thirds of the session timeout
            wait_s = self._config.zookeeper_session_timeout_ms / 3000
            self._silence_timer = asyncio.get_running_loop().call_later(
                wait_s, self._end_term, "ZooKeeper cannot be reached"
            )

    async def _new_session(self) -> None:
        """Register again (waits for the new session), then stand for election.

        The broker stays unregistered while another broker holds its id.
        """
        while True:
            try:
                await self._registration.register()
            except AlreadyRegistered as why:
                log.error("%s", why)
            else:
                break
        await self._elect()

    async def _verify(self) -> None:
        """Resign unless still elected; stand for election unless active."""
        if self._term is not None and self._won is not None:
            if await self._election.still_won(self._won):
                return
            self._end_term("another controller was elected")
        await self._elect()

    async def _elect(self) -> None:
        if self._term is not None:
            return
        won = await self._election.stand()
        if won is None:
            return
        log.info("elected controller with epoch %d", won.epoch)
        self._won = won
        self._term = self._new_term(won)
        await self._term.begin()

    async def _resign(self) -> None:
        await asyncio.sleep(BACKOFF_AFTER_BUG_S)
        await self._election.resign()
        await self._elect()

    def _new_term(self, won: ElectedEpoch) -> Term:
        config = self._config
        return Term(
            ControllerContext(config.broker_id, won.epoch, won.epoch_version),
            self._zk,
            self.configs,
            self._channels,
            TermOptions(
                listener=config.inter_broker_listener,
                request_timeout_ms=config.controller_socket_timeout_ms,
                unclean_by_default=self._unclean_by_default,
                deletion_enabled=config.delete_topic_enable,
                make_topic_id=self.admin.make_topic_id,
            ),
            self._queue_for_term,
            lambda: self._queue_event("verify", self._verify),
            self.elections,
        )

    def _end_term(self, why: str) -> None:
        """End the term at once, even within an event; waiting requests get NOT_CONTROLLER.

        While ZooKeeper does not answer, another controller may have been elected, so the term does
        not wait for the expiry of its session. If the session survives, the same epoch resumes.
        """
        if self._term is None:
            return
        log.info("no longer controller (epoch %d): %s", self.epoch, why)
        self._term.close()
        self._term = None
        for future, answer in self._waiting_requests.items():
            if not future.done():
                future.set_result(answer)

    # Settings and the periodic rebalance.

    def _on_topic_config(self, topic: str, overrides: dict[str, str]) -> None:
        if overrides.get(UNCLEAN, "").lower() == "true":
            self._queue_for_term(lambda term: term.unclean_allowed(topic))

    def _on_properties(self, changed: frozenset[str]) -> None:
        if UNCLEAN in changed and self._unclean_by_default():
            self._queue_for_term(Term.unclean_allowed_by_default)

    def _unclean_by_default(self) -> bool:
        return bool(self._config.properties.value(UNCLEAN))

    async def _rebalance(self) -> None:
        """Periodic, because no event reports an imbalance of leaders."""
        await asyncio.sleep(FIRST_REBALANCE_S)
        percent = self._config.leader_imbalance_per_broker_percentage
        while True:
            self._queue_event("rebalance", lambda: self._rebalance_now(percent))
            await asyncio.sleep(self._config.leader_imbalance_check_interval_seconds)

    async def _rebalance_now(self, percent: int) -> None:
        if self._term is not None:
            await self._term.rebalance_leaders(percent)


async def _do_nothing(_term: Term) -> None:
    pass
