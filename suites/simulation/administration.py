"""An administrator: creates, grows, configures and deletes topics of its own; moves replicas of
these and of the topic with records, cancels moves, and has preferred leaders elected.

Every act is one request, which is not repeated. Topics have new names, as rows of evidence know a
partition by the name of its topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from urteil.suites.simulation.client import LOST, Client
from urteil.suites.simulation.cluster import BROKERS
from urteil.suites.simulation.evidence import Place
from urteil.suites.simulation.history import Act

ACTS = (
    *((3, "create"), (2, "delete"), (2, "grow"), (2, "configure")),
    *((5, "move"), (3, "cancel"), (3, "elect")),
)
"""The acts with their weights; each is a method of `Administrator`."""
OWN_TOPICS = 3
SETTING = "retention.ms"
TIMEOUT_MS = 5_000
TOPIC_RESOURCE, SET = 2, 0
NOT_DONE = (
    *(ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    *(ErrorCode.INVALID_PARTITIONS, ErrorCode.REASSIGNMENT_IN_PROGRESS),
    *(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    *(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.INVALID_REPLICATION_FACTOR),
    ErrorCode.ELECTION_NOT_NEEDED,
)
"""Nothing was changed, for certain."""


class Administrator(Client):
    """One request after the other, to the controller as some broker knows it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._own: dict[str, int] = {}
        """Topics of its own that may exist, with their partitions."""
        self._made = 0
        self._moved: Place | None = None
        self._controller: int | None = None

    async def run(self, topic: str, partitions: int, until_s: float, pause_s: float) -> None:
        """`topic` has records: it is never deleted or grown."""
        weights, names = [weight for weight, _ in ACTS], [name for _, name in ACTS]
        while self.now_s() < until_s:
            await asyncio.sleep(self.rng.expovariate(1 / pause_s))
            (name,) = self.rng.choices(names, weights)
            shared = [(topic, n) for n in range(partitions)]
            own = [(name, n) for name, count in self._own.items() for n in range(count)]
            if name in ("move", "cancel", "elect"):
                await getattr(self, f"_{name}")(self.rng.choice([*shared, *own]))
            elif name == "create" or not self._own:
                await self._create()
            else:
                await getattr(self, f"_{name}")(self.rng.choice(list(self._own)))

    # topics of its own

    async def _create(self) -> None:
        if len(self._own) >= OWN_TOPICS:
            return
        self._made += 1
        name, count = f"u{self._made}", self.rng.choice((1, 2))
        self._own[name] = count
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=count, replication_factor=2, assignments=[], configs=[]
        )
        await self._request(
            ("create", name, None, count),
            CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 4,
            lambda answer: answer.topics[0].error_code,
        )  # fmt: skip

    async def _delete(self, name: str) -> None:
        """Whatever comes of it, nothing else is done to the topic."""
        del self._own[name]
        await self._request(
            ("delete", name, None, None),
            DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS), 4,
            lambda answer: answer.responses[0].error_code,
        )  # fmt: skip

    async def _grow(self, name: str) -> None:
        count = self._own[name] + 1
        topic = CreatePartitionsRequest.CreatePartitionsTopic(
            name=name, count=count, assignments=None
        )
        if await self._request(
            ("grow", name, None, count),
            CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 1,
            lambda answer: answer.results[0].error_code,
        ) == "ok":  # fmt: skip
            self._own[name] = count

    async def _configure(self, name: str) -> None:
        await self._set(name, str(self.rng.randrange(10**6, 10**9)))

    async def _set(self, name: str, value: str) -> str:
        """The outcome of a change of the topic's retention."""
        config = IncrementalAlterConfigsRequest.AlterableConfig(
            name=SETTING, config_operation=SET, value=value
        )
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config]
        )
        return await self._request(
            ("configure", name, None, value),
            IncrementalAlterConfigsRequest(resources=[resource]), 1,
            lambda answer: answer.responses[0].error_code,
        )  # fmt: skip

    async def change_retention(self, topic: str, pause_s: float, *values_ms: int) -> None:
        """Set the retention of a topic to one value after another. After a request without an
        answer there is no further one, for it may be executed at any later time."""
        for value_ms in values_ms:
            await asyncio.sleep(pause_s)
            if await self._set(topic, str(value_ms)) != "ok":
                return

    # replicas and leaders of any topic

    async def _move(self, place: Place) -> None:
        """To two brokers or three: there is always one that keeps its replica."""
        size = 2 if place[0] in self._own else self.rng.choice((2, 3))
        self._moved = place
        await self._reassign("move", place, self.rng.sample(BROKERS, size))

    async def _cancel(self, place: Place) -> None:
        """The last move if there was one."""
        await self._reassign("cancel", self._moved or place, None)

    async def _reassign(self, kind: str, place: Place, replicas: list[int] | None) -> None:
        topic, number = place
        partition = AlterPartitionReassignmentsRequest.ReassignablePartition(
            partition_index=number, replicas=replicas
        )
        named = AlterPartitionReassignmentsRequest.ReassignableTopic(
            name=topic, partitions=[partition]
        )
        await self._request(
            (kind, topic, number, replicas),
            AlterPartitionReassignmentsRequest(topics=[named], timeout_ms=TIMEOUT_MS), 0,
            lambda answer: answer.error_code or answer.responses[0].partitions[0].error_code,
        )  # fmt: skip

    async def _elect(self, place: Place) -> None:
        topic, number = place
        named = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[number])
        await self._request(
            ("elect", topic, number, None),
            ElectLeadersRequest(topic_partitions=[named], timeout_ms=TIMEOUT_MS), 1,
            lambda answer: answer.error_code
            or answer.replica_election_results[0].partition_result[0].error_code,
        )  # fmt: skip

    async def _request(
        self,
        act: tuple[str, str, int | None, Any],
        message: Any,
        version: int,
        code_of: Callable[[Any], int],
    ) -> str:
        """The outcome of an act: `ok`, `fail` (certainly not done) or `info` (unknown)."""
        controller = await self._find_controller()
        begin_s, outcome = self.now_s(), "info"
        try:
            code = code_of(await self.ask(controller, message, version, 2 * TIMEOUT_MS))
        except LOST:
            self._controller = None
        else:
            if code == ErrorCode.NONE:
                outcome = "ok"
            elif code in NOT_DONE:
                outcome = "fail"
            if code == ErrorCode.NOT_CONTROLLER:
                self._controller = None
        self.history.acts.append(Act(self.name, *act, begin_s, self.now_s(), outcome))
        return outcome

    async def _find_controller(self) -> int:
        while self._controller is None:
            answer = await self.any_node(MetadataRequest(topics=[]), 9)
            if answer.controller_id >= 0:
                self._controller = answer.controller_id
            else:
                await self.back_off()
        return self._controller
