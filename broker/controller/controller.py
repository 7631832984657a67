"""The controller's shell: stands for election, and feeds one term of office with events."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from urteil.broker.base.clock import Clock
from urteil.broker.base.remote_time import waiting
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.controller import partition_requests, topic_requests
from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.controller_election import ControllerElection, ElectedEpoch
from urteil.broker.controller.election_counters import Elections
from urteil.broker.controller.metadata_store import ControllerFenced
from urteil.broker.controller.mutation_quota import Take, unlimited
from urteil.broker.controller.request_senders import RequestChannel
from urteil.broker.controller.requested_elections import ElectionOutcomes
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.term import Term, TermOptions
from urteil.broker.controller.topic_admin import TopicAdmin
from urteil.broker.security.acls.acl_model import Allowed, everything
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
        self._more = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._asked: dict[asyncio.Future[Any], Any] = {}  # with the answer of no controller
        self._silence: asyncio.TimerHandle | None = None

    @property
    def is_active(self) -> bool:
        return self._term is not None

    @property
    def epoch(self) -> int:
        """The controller epoch this broker was elected with last; 0 before."""
        return self._won.epoch if self._won else 0

    @property
    def term(self) -> Term | None:
        """The term of office once it knows the cluster."""
        return self._term if self._term is not None and self._term.ready else None

    async def start(self) -> None:
        """Watch `/controller` and stand for election."""
        self._zk.on_state(self._on_state)
        self.configs.on_change(self._on_topic_config)
        self._config.properties.subscribe(self._on_properties)
        await self.configs.start()
        self._put("elect", self._elect)
        self._tasks.append(asyncio.create_task(self._run(), name="controller"))
        if self._config.auto_leader_rebalance_enable:
            self._tasks.append(asyncio.create_task(self._rebalance(), name="rebalance"))

    async def stop(self) -> None:
        """Resign and stop all tasks; before `Session.close`, which frees `/controller`."""
        self._end_term("shutdown")
        if self._silence is not None:
            self._silence.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.configs.stop()

    # What handlers ask for.

    async def auto_create(self, names: Sequence[str]) -> dict[str, ErrorCode]:
        """Create topics for Metadata and coordinators, from any broker, without waiting.

        LEADER_NOT_AVAILABLE: made now or by another just before (ask again);
        INVALID_TOPIC_EXCEPTION, INVALID_REPLICATION_FACTOR otherwise.
        """
        return await topic_requests.auto_create(self.admin, self._config, names)

    async def alter_partition(
        self, request: AlterPartitionRequest, version: int
    ) -> AlterPartitionResponse:
        return await self._ask(
            lambda term: term.alter_partition(request, version),
            AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER),
        )

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        return await self._ask(
            lambda term: term.controlled_shutdown(request),
            ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER),
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        return await self._ask(
            lambda term: term.allocate_producer_ids(request),
            AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER),
        )

    async def create_topics(
        self,
        request: CreateTopicsRequest,
        version: int,
        allowed: Allowed = everything,
        take: Take = unlimited,
    ) -> CreateTopicsResponse:
        """Validate and write; then wait for leaders, at most `timeout_ms`."""
        await self._has_begun()
        return await topic_requests.create_topics(self, self._config, request, allowed, take)

    async def delete_topics(
        self,
        request: DeleteTopicsRequest,
        version: int,
        allowed: Allowed = everything,
        take: Take = unlimited,
    ) -> DeleteTopicsResponse:
        """Note the wish; then wait until the topics are gone, at most `timeout_ms`."""
        await self._has_begun()
        return await topic_requests.delete_topics(
            self, self._config, request, version, allowed, take
        )

    async def create_partitions(
        self,
        request: CreatePartitionsRequest,
        allowed: Allowed = everything,
        take: Take = unlimited,
    ) -> CreatePartitionsResponse:
        """Validate and write; then wait for leaders, at most `timeout_ms`."""
        await self._has_begun()
        return await partition_requests.create_partitions(self, request, allowed, take)

    async def elect_leaders(
        self, asked: Sequence[TopicPartition] | None, *, unclean: bool
    ) -> ElectionOutcomes | None:
        """The leaders elected, as written in ZooKeeper; None where this is not the controller."""
        return await self._ask(lambda term: term.elect_leaders(asked, unclean=unclean), None)

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Answered when it is noted in ZooKeeper, long before it is done."""
        asked = await partition_requests.asked_reassignments(request)
        results = await self._ask(lambda term: term.alter_reassignments(asked), None)
        if results is None:
            return AlterPartitionReassignmentsResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER
            )
        return await partition_requests.altered(results)

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        asked = await partition_requests.listed_partitions(request)
        under_way = await self._ask(lambda term: term.reassignments(asked), None)
        if under_way is None:
            return ListPartitionReassignmentsResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER
            )
        return await partition_requests.listed(under_way)

    async def _ask(self, act: Callable[[Term], Awaitable[T]], not_controller: U) -> T | U:
        """Have the term do something in its turn; `not_controller` once there is none."""
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

        self._asked[future] = not_controller
        self._put(event, event)
        try:
            return await waiting(future)
        finally:
            self._asked.pop(future, None)

    async def _has_begun(self) -> None:
        """Wait until a controller knows the cluster: metadata names it some time before."""
        if self._term is not None and not self._term.ready:
            await self._ask(_nothing, None)

    # The queue.

    def _put(self, key: object, event: Event) -> None:
        """Queue an event; one that is queued already and reads everything anew counts for both."""
        if key not in self._queued:
            self._queued.add(key)
            self._events.append(lambda: self._take(key, event))
            self._more.set()

    async def _take(self, key: object, event: Event) -> None:
        self._queued.discard(key)
        await event()

    def _queue_for_term(self, method: Callable[[Term], Any]) -> None:
        async def event() -> None:
            if self._term is not None:
                await method(self._term)

        self._put(method, event)

    async def _run(self) -> None:
        while True:
            await self._more.wait()
            while self._events:
                await self._handle(self._events.popleft())
            self._more.clear()

    async def _handle(self, event: Event) -> None:
        try:
            await event()
        except ControllerFenced as why:
            self._end_term(str(why))
            self._put("elect", self._elect)
        except LOST as why:
            self._end_term(repr(why))
            self._put("elect", self._elect)
        except SessionClosed:
            self._end_term("the session is closed")
        except Exception:
            # what is in memory may be wrong now: begin anew from ZooKeeper
            log.exception("an event failed; resigning")
            self._end_term("an event failed")
            self._put("resign", self._resign)

    # Elections.

    def _on_controller(self, _path: str) -> None:
        self._put("verify", self._verify)

    def _on_state(self, state: State) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if state is State.EXPIRED:
            self._end_term("the session expired")
            self._put("new session", self._new_session)
        elif state is State.CONNECTED:
            self._put("verify", self._verify)
        elif self._term is not None:
            # a connection is given up after two thirds of the session timeout without an answer
            wait_s = self._config.zookeeper_session_timeout_ms / 3000
            self._silence = asyncio.get_running_loop().call_later(
                wait_s, self._end_term, "ZooKeeper cannot be reached"
            )

    async def _new_session(self) -> None:
        """Register again (waits for the new session), then stand again.

        While another broker holds this one's id, this one stays unregistered.
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
            ),
            self._queue_for_term,
            lambda: self._put("verify", self._verify),
            self.elections,
        )

    def _end_term(self, why: str) -> None:
        """At once, in the middle of an event too: whoever waits is sent to the next controller.

        While ZooKeeper is silent another may have been elected, so this is not put off until the
        session is known to have expired. The same epoch is taken up again if it has not.
        """
        if self._term is None:
            return
        log.info("no longer controller (epoch %d): %s", self.epoch, why)
        self._term.close()
        self._term = None
        for future, answer in self._asked.items():
            if not future.done():
                future.set_result(answer)

    # What else starts an event.

    def _on_topic_config(self, topic: str, overrides: dict[str, str]) -> None:
        if overrides.get(UNCLEAN, "").lower() == "true":
            self._queue_for_term(lambda term: term.unclean_allowed(topic))

    def _on_properties(self, changed: frozenset[str]) -> None:
        if UNCLEAN in changed and self._unclean_by_default():
            self._queue_for_term(Term.unclean_allowed_by_default)

    def _unclean_by_default(self) -> bool:
        return bool(self._config.properties.value(UNCLEAN))

    async def _rebalance(self) -> None:
        """Periodic by nature: nothing tells that leaders are out of balance."""
        await asyncio.sleep(FIRST_REBALANCE_S)
        percent = self._config.leader_imbalance_per_broker_percentage
        while True:
            self._put("rebalance", lambda: self._rebalance_now(percent))
            await asyncio.sleep(self._config.leader_imbalance_check_interval_seconds)

    async def _rebalance_now(self, percent: int) -> None:
        if self._term is not None:
            await self._term.rebalance_leaders(percent)


async def _nothing(_term: Term) -> None:
    pass
