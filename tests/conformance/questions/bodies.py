"""Every API that ours serves with bodies that say nothing, lie, end too early or go on too long."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.conformance.malformed import TEXT, body, length, paths, sample
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import gives_producer_ids
from tests.conformance.side import ANSWER_TIMEOUT_S
from tests.conformance.transactions import coordinator
from urteil.broker.api.registry import SERVED, load_handlers
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.framing import RequestHeader, encode_request, request_header_version
from urteil.broker.wire.schema import Message

load_handlers()

LARGE = 1 << 30
LARGEST = b"\xff\xff\xff\xff\x0f"
"""Far more elements than the rest of the frame has bytes."""

ALL_THERE_IS = {
    ApiKey.METADATA: "topics",
    ApiKey.LIST_GROUPS: "groups",
    ApiKey.API_VERSIONS: "api_keys",
    ApiKey.DESCRIBE_LOG_DIRS: "results",
}
"""Fields that select everything a broker has, also the objects of other questions."""

ASKED_SINCE = {
    ApiKey.METADATA: 4,  # before, it makes the topics that it is asked about
}

UNANSWERED = {
    (ApiKey.ALTER_CONFIGS, "everything twice"),
    (ApiKey.OFFSET_FETCH, "all fields at their defaults"),
    (ApiKey.OFFSET_FETCH, "empty arrays"),
    (ApiKey.PRODUCE, "all fields at their defaults"),
    (ApiKey.PRODUCE, "empty arrays"),
}
"""Not asked: Apache Kafka fails and gives no answer, or there is none to acks=0."""

HANGS_SINCE = {ApiKey.ADD_PARTITIONS_TO_TXN: 4}
PATIENCE_S = 3.0
"""Apache Kafka never answers these when they name nothing: that long is waited for it, not 30 s."""

OF_THE_CONTROLLER = {
    ApiKey.CONTROLLED_SHUTDOWN, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS, ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.UPDATE_FEATURES, ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
}  # fmt: skip
OF_THE_COORDINATOR = {
    ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE, ApiKey.FIND_COORDINATOR, ApiKey.TXN_OFFSET_COMMIT,
}  # fmt: skip


OF_TRANSACTIONS = {
    ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN,
    ApiKey.DESCRIBE_TRANSACTIONS,
}  # fmt: skip


def served_messages() -> list[type[Message]]:
    return [request.request for _, request in sorted(SERVED.items())]


def send(asker: Asker, message: type[Message], data: bytes) -> Any:
    """A body under a sound header on a connection of its own."""
    header = RequestHeader(message.KEY, asker.version, 77, "asker")
    head = b"".join(encode_request(header, _Bare(data)))  # type: ignore[arg-type]
    frame = asker.side.raw(
        head, to=_place(asker, message), patience_s=_patience_s(asker, message, data)
    )
    if isinstance(frame, str):
        return frame
    return asker.side.plain(asker.side.decode(message(), asker.version, frame))


def _patience_s(asker: Asker, message: type[Message], data: bytes) -> float:
    hangs = message.KEY in HANGS_SINCE and asker.version >= HANGS_SINCE[message.KEY]
    nothing = hangs and data == b"".join(message().encode(asker.version))
    return PATIENCE_S if nothing and asker.side.name == "theirs" else ANSWER_TIMEOUT_S


def _place(asker: Asker, message: type[Message]) -> int:
    if message.KEY == ApiKey.INIT_PRODUCER_ID:
        gives_producer_ids(asker.side)
    if message.KEY in OF_THE_CONTROLLER:
        return asker.side.controller()
    if message.KEY in OF_THE_COORDINATOR:
        return asker.side.coordinator(TEXT)
    if message.KEY in OF_TRANSACTIONS:
        return coordinator(asker.side, TEXT)
    return 1


class _Bare:
    """Bytes where a message is expected."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def encode(self, _version: int) -> list[bytes]:
        return [self._data]


def answer_kind(answer: Any) -> str:
    """Of answers to broken bodies, whether there is one."""
    return answer if isinstance(answer, str) else "answered"


def by_default(asker: Asker, message: type[Message]) -> Any:
    return without_all(message, send(asker, message, b"".join(message().encode(asker.version))))


def without_all(message: type[Message], answer: Any) -> Any:
    left_out = ALL_THERE_IS.get(message.KEY)
    return answer if isinstance(answer, str) or left_out is None else {**answer, left_out: None}


def naming_nothing(asker: Asker, message: type[Message], *, times: int = 1) -> Any:
    data = body(message, asker.version, sample(message, asker.version, times=times))
    return without_all(message, send(asker, message, data))


twice = partial(naming_nothing, times=2)
empty_arrays = partial(naming_nothing, times=0)


def nulls(asker: Asker, message: type[Message]) -> Any:
    """Null in each field where none may be."""
    values = sample(message, asker.version)
    answers = {}
    for path, spec in paths(message, asker.version):
        variable = spec.is_array or spec.element in ("string", "bytes")
        if variable and asker.version not in spec.nullable:
            spoilt = {path: length(message, asker.version, spec, -1)}
            answers[path] = answer_kind(
                send(asker, message, body(message, asker.version, values, spoilt=spoilt))
            )
    return answers


def wrong_counts(asker: Asker, message: type[Message]) -> Any:
    values = sample(message, asker.version)
    answers = {}
    for path, spec in paths(message, asker.version):
        if spec.is_array or spec.element in ("string", "bytes"):
            for count in (-2, LARGE):
                spoilt = {path: length(message, asker.version, spec, count)}
                data = body(message, asker.version, values, spoilt=spoilt)
                answers[f"{path} {count}"] = answer_kind(send(asker, message, data))
    return answers


def too_short(asker: Asker, message: type[Message]) -> Any:
    frame = body(message, asker.version, sample(message, asker.version))
    cuts = sorted({0, 1, len(frame) // 3, len(frame) // 2, len(frame) - 1})
    return {cut: answer_kind(send(asker, message, frame[:cut])) for cut in cuts if cut < len(frame)}


def too_long(asker: Asker, message: type[Message]) -> Any:
    frame = body(message, asker.version, sample(message, asker.version))
    return without_all(message, send(asker, message, frame + b"abc"))


def unknown_tags(asker: Asker, message: type[Message]) -> Any:
    """Tagged fields that nobody knows are passed over; such that lie are not."""
    if request_header_version(message.KEY, asker.version) < 2:
        return "no tags in this version"
    values = sample(message, asker.version)
    tags = {"unknown": b"\x01\x63\x02ab", "lying length": b"\x01\x63\x7fab", "none": b"\0",
            "out of order": b"\x02\x64\x00\x63\x00", "twice": b"\x02\x63\x00\x63\x00",
            "2^32 - 1": LARGEST, "length of 2^32 - 1": b"\x01\x63" + LARGEST}  # fmt: skip
    return {
        name: answer_kind(send(asker, message, body(message, asker.version, values, tags=section)))
        for name, section in tags.items()
    }


VARIANTS: dict[str, Callable[..., Any]] = {
    "all fields at their defaults": by_default,
    "names of nothing": naming_nothing,
    "everything twice": twice,
    "empty arrays": empty_arrays,
    "null where none may be": nulls,
    "counts that lie": wrong_counts,
    "too short": too_short,
    "bytes after the body": too_long,
    "tagged fields": unknown_tags,
}

for _message in served_messages():
    _subject = Subject("Bodies", _message.KEY)
    for _text, _variant in VARIANTS.items():
        _since = ASKED_SINCE.get(_message.KEY, 0)
        if (_message.KEY, _text) not in UNANSWERED:
            _subject.question(f"{_message.KEY.name}: {_text}", since=_since)(
                partial(_variant, message=_message)
            )
