"""What a question is, and how brokers are asked: any request that kafka-python knows, of any one of
them, so that it is known which broker answered what."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kafka.errors import for_code
from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from urteil.harness.protocol.connection import Connection

OF_GROUP, OF_TRANSACTIONS = 0, 1
SPREADS_S, POLL_S = 3.0, 0.05
"""So long it may take until a broker has heard of what another one knows."""
T = TypeVar("T")


class PreconditionFailed(Exception):
    """Something that was needed before the question proper was refused; says what, and how."""


class Brokers:
    """All brokers by id. Each request has a connection of its own."""

    def __init__(self, addresses: Sequence[str], timeout_s: float) -> None:
        """Raises OSError where one of them cannot be asked."""
        self._timeout_s = timeout_s
        self._addresses: dict[int, str] = {}
        for address in addresses:
            for one in self._ask(address, _about()).brokers:
                if f"{one.host}:{one.port}" == address:
                    self._addresses[one.node_id] = address

    @property
    def nodes(self) -> list[int]:
        return sorted(self._addresses)

    def ask(self, node: int, request: Any, client_id: str = "examiner") -> Any:
        """The answer of one broker. Raises OSError when it gives none in time."""
        return self._ask(self._addresses[node], request, client_id)

    def answers_after(self, node: int, request: Any) -> bool:
        """Whether, when a request that has no answer and Metadata are sent at once, the first
        answer is that to the latter. Raises OSError where the connection is closed."""
        frames = [_frame(request, 1), _frame(_about(), 2)]
        with closing(Connection(self._addresses[node], self._timeout_s)) as connection:
            data = connection.call(b"".join(frames))
        return bool(struct.unpack_from(">i", data)[0] == 2)

    def raw(self, node: int, frame: bytes) -> bytes:
        """The answer to a whole frame, without its size. Raises OSError when there is none."""
        with closing(Connection(self._addresses[node], self._timeout_s)) as connection:
            return connection.call(frame)

    def order(self, node: int, requests: Sequence[Any]) -> list[int]:
        """Which of several requests that are sent at once is answered first, second ..."""
        frames = [_frame(request, number) for number, request in enumerate(requests)]
        with closing(Connection(self._addresses[node], self._timeout_s)) as connection:
            return [struct.unpack_from(">i", data)[0] for data in connection.call_all(frames)]

    def throttled_ms(self, node: int, client_id: str) -> int:
        """How long a broker has this client wait."""
        return int(self.ask(node, _about(), client_id).throttle_time_ms)

    def _ask(self, address: str, request: Any, client_id: str = "examiner") -> Any:
        with closing(Connection(address, self._timeout_s)) as connection:
            data = connection.call(_frame(request, 1, client_id))
        return ResponseClassRegistry.get_response_class(request.header).decode(data, header=True)

    def metadata(self, node: int, topic: str, version: int = 7) -> Any:
        """What one broker tells of one topic."""
        (told,) = self.ask(node, _about(topic, version=version)).topics
        return told

    @property
    def controller(self) -> int:
        told = self.ask(self.nodes[0], _about()).controller_id
        if told not in self._addresses:
            raise PreconditionFailed(f"no controller but {told}")
        return int(told)

    def coordinator(self, key: str, kind: int = OF_GROUP) -> int:
        """Who coordinates a group or a transactional id."""
        asked = FindCoordinatorRequest[2](key=key, key_type=kind)
        told = self.ask(self.nodes[0], asked)
        check("FindCoordinator", told.error_code)
        return int(told.node_id)

    def create(self, topic: str, replicas: Sequence[Sequence[int]], **config: Any) -> None:
        """A topic whose partitions have these replicas; returns when every broker knows all of
        them to be in sync."""
        kinds = CreateTopicsRequest
        given = [
            kinds.CreatableTopic.CreatableReplicaAssignment(partition_index=p, broker_ids=ids)
            for p, ids in enumerate(replicas)
        ]
        check("CreateTopics", self.create_errors(topic, assignments=given, **config)[0])
        wanted = str([sorted(ids) for ids in replicas])
        _, told = by_all(self, lambda node: str(self._in_sync(node, topic)), wanted)
        if told != wanted:
            raise PreconditionFailed(
                f"{told} instead of {wanted} are in sync of a topic that was made"
            )

    def _in_sync(self, node: int, topic: str) -> list[list[int]]:
        told = sorted(self.metadata(node, topic).partitions, key=lambda one: one.partition_index)
        return [sorted(one.isr_nodes) for one in told]

    def create_errors(
        self,
        topic: str,
        *,
        partitions: int = -1,
        replication: int = -1,
        assignments: Sequence[Any] = (),
        validate: bool = False,
        **config: Any,
    ) -> list[int]:
        """The error of a topic's creation; underscores in names of settings become dots."""
        kinds = CreateTopicsRequest.CreatableTopic
        configs = [
            kinds.CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in config.items()
        ]
        asked = kinds(
            name=topic, num_partitions=partitions, replication_factor=replication,
            assignments=list(assignments), configs=configs,
        )  # fmt: skip
        request = CreateTopicsRequest[4](topics=[asked], timeout_ms=5_000, validate_only=validate)
        return [one.error_code for one in self.ask(self.controller, request).topics]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`ask` is given a name that nothing has yet, and says which broker told what; `answer` is what
    is right. It may be asked again, under another name."""

    about: str
    answer: str
    ask: Callable[[Brokers, str], tuple[int, str]]


def name_of(code: int) -> str:
    """An error as kafka-python calls it, `No` for none."""
    return str(for_code(code).__name__).removesuffix("Error")


def check(what: str, code: int) -> None:
    """Raises PreconditionFailed for an error."""
    if code:
        raise PreconditionFailed(f"{what}: {name_of(code)}")


def names(codes: Iterable[int]) -> str:
    return ", ".join(name_of(code) for code in codes)


def awaited(told: Callable[[], str], answer: str) -> str:
    """What is told once that is the answer; what it was when it had its time."""
    deadline = time.monotonic() + SPREADS_S
    while (found := told()) != answer and time.monotonic() < deadline:
        threading.Event().wait(POLL_S)
    return found


def by_all(brokers: Brokers, told: Callable[[int], str], answer: str) -> tuple[int, str]:
    """The first broker that goes on telling otherwise, and what; else the last one."""
    for node in brokers.nodes:
        found = awaited(partial(told, node), answer)
        if found != answer:
            break
    return node, found


def together(acts: Sequence[Callable[[], T]]) -> list[T]:
    """What comes of several acts at one time."""
    with ThreadPoolExecutor(len(acts)) as pool:
        return [one.result() for one in [pool.submit(act) for act in acts]]


def _frame(request: Any, correlation: int, client_id: str = "examiner") -> bytes:
    request.with_header(correlation_id=correlation, client_id=client_id)
    return bytes(request.encode(header=True, framed=True))


def _about(*topics: str, version: int = 7) -> Any:
    """Metadata of these topics, none of which is made by that."""
    asked = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest[version](topics=asked, allow_auto_topic_creation=False)
