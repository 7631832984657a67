"""The journal of one client: its invocations and completions, one JSON array for each line.

The client writes invocations before the call and completions after it, each at once to a file that
survives the SIGKILL of the client (`line_file.py`). Only the last entry can be unfinished. A
journal without its `End` was cut.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import msgspec

from urteil.harness.evidence.line_file import LineFile

ADMIN_ACTS = "admin_ops.jsonl"
"""The file of the lab's administrative acts."""
METADATA_COMMITTED = "metadata_committed.jsonl"
"""The file of batches of KRaft's metadata log that the lab observed as committed."""
QUORUM_STATES = "quorum_states.jsonl"
"""The file of observed versions of the controllers' `quorum-state`."""
CLOCKS_SET = "clocks.jsonl"
"""The file of the wall clocks that the lab set for nodes."""
CLIENT_ACTS = "clients.jsonl"
"""The file of the lab's acts on its clients: kills, and requests with their transactional ids."""


class Begin(msgspec.Struct, tag="begin", array_like=True, frozen=True, kw_only=True):
    """The first entry: the client, and both clocks at one moment (`wall_ns` read with `at_ns`)."""

    run: str
    client: str
    session: int
    kind: str
    at_ns: int
    wall_ns: int
    boot_id: str
    pid: int
    library: str
    version: str
    topic_ids: dict[str, str]
    acks: int | None = None
    idempotent: bool | None = None
    group: str | None = None
    isolation: str | None = None
    transactional_id: str | None = None
    instance: str | None = None


class Send(msgspec.Struct, tag="send", array_like=True, frozen=True):
    """A record is about to be sent; `partition` is the intended one.

    A `tombstone` deletes its key. `txn` is the client's transaction around it, `source` the value
    from which a pipeline made it.
    """

    op: int
    invoke_ns: int
    topic: str
    partition: int
    key: str | None
    timestamp_ms: int
    tombstone: bool = False
    txn: int | None = None
    source: str | None = None


class _Completion(msgspec.Struct, array_like=True, frozen=True):
    """`attempts` is negative if the client library does not report them."""

    op: int
    complete_ns: int
    error: str | None
    attempts: int
    ambiguous: bool
    partition: int | None
    offset: int | None
    node: int | None
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    timestamp_ms: int | None


class Ok(_Completion, tag="ok", array_like=True, frozen=True):
    """The send was acknowledged (acks=0: handed to the network)."""


class Fail(_Completion, tag="fail", array_like=True, frozen=True):
    """The send certainly did not happen."""


class Info(_Completion, tag="info", array_like=True, frozen=True):
    """The outcome of the send is unknown."""


class Got(msgspec.Struct, array_like=True, frozen=True):
    """One record of a poll."""

    offset: int
    key: str | None
    value_id: str | None
    intact: bool
    leader_epoch: int | None
    timestamp_ms: int | None


class Slice(msgspec.Struct, array_like=True, frozen=True):
    """The effect of one poll on one partition."""

    topic: str
    partition: int
    pass_: int
    before: int | None
    after: int | None
    event: str | None
    records: list[Got]


class Poll(msgspec.Struct, tag="poll", array_like=True, frozen=True):
    """One poll that returned records, moved a position, or failed. Of other polls one for each
    second is recorded, as a sign of life of the client."""

    poll: int
    invoke_ns: int
    complete_ns: int
    outcome: str
    error: str | None
    generation: int | None
    slices: list[Slice]
    txn: int | None = None


IDLE_NS = 1_000_000_000
"""The longest time without an entry of a polling client."""


class PassBegin(msgspec.Struct, tag="pass", array_like=True, frozen=True):
    """A pass over a partition begins. `to_offset` (exclusive) is the end that it must reach."""

    pass_: int
    topic: str
    partition: int
    begin_ns: int
    from_offset: int
    to_offset: int | None
    isolation: str
    final: bool


class PassEnd(msgspec.Struct, tag="passed", array_like=True, frozen=True):
    """`to_offset` is the end of a pass that had none to reach. `leader` led during the entire
    pass."""

    pass_: int
    topic: str
    partition: int
    end_ns: int
    to_offset: int
    complete: bool
    leader: int | None


class CommitEntry(msgspec.Struct, array_like=True, frozen=True):
    topic: str
    partition: int
    offset: int
    processed_to: int


class Commit(msgspec.Struct, tag="commit", array_like=True, frozen=True):
    """Offsets are about to be committed, or deleted if `deletes`; of another group than the
    client's own if it names one."""

    number: int
    invoke_ns: int
    generation: int | None
    member_id: str | None
    offsets: list[CommitEntry]
    txn: int | None = None
    group: str | None = None
    deletes: bool = False
    member_epoch: int | None = None


class Committed(msgspec.Struct, tag="committed", array_like=True, frozen=True):
    number: int
    complete_ns: int
    outcome: str
    error: str | None


class CommitRead(msgspec.Struct, tag="fetched", array_like=True, frozen=True):
    """One OffsetFetch. `offset` is None if the group had no commit. `intact`: whether the response
    had the metadata of the commit; None if that is not checked."""

    invoke_ns: int
    complete_ns: int
    outcome: str
    error: str | None
    generation: int | None
    member_id: str | None
    topic: str
    partition: int
    offset: int | None
    intact: bool | None = None
    group: str | None = None


class DeliveredRecord(Got, array_like=True, frozen=True):
    """A record that a share group delivered, with the broker's count of its deliveries."""

    delivery_count: int | None


class DeliveredSlice(msgspec.Struct, array_like=True, frozen=True):
    topic: str
    partition: int
    records: list[DeliveredRecord]


class Delivered(msgspec.Struct, tag="delivered", array_like=True, frozen=True):
    """A poll of a share group's member returned records.

    `requested_ns` is before the first request that may have acquired them.
    """

    poll: int
    requested_ns: int
    read_ns: int
    group: str
    slices: list[DeliveredSlice]


class Acknowledgement(msgspec.Struct, array_like=True, frozen=True):
    """`accept`, `release` or `reject`."""

    topic: str
    partition: int
    offset: int
    acknowledgement: str


class Acknowledge(msgspec.Struct, tag="acknowledge", array_like=True, frozen=True):
    """The records of the last `Delivered` are about to be acknowledged."""

    invoke_ns: int
    records: list[Acknowledgement]


class AcknowledgeResult(msgspec.Struct, array_like=True, frozen=True):
    topic: str
    partition: int
    outcome: str
    error: str | None


class Acknowledged(msgspec.Struct, tag="acknowledged", array_like=True, frozen=True):
    """The answers, one for each partition."""

    complete_ns: int
    results: list[AcknowledgeResult]


class Assigned(msgspec.Struct, tag="assigned", array_like=True, frozen=True):
    """A change of assignment. `event` is `assigned`, `revoked` or `lost`; `kept` or `forgotten`:
    the coordinator returned the assignment of the generation, or another one; `given`: the client
    leads its group and assigned these partitions to that member. `member_epoch` is that of a member
    of a group of the protocol `consumer`."""

    at_ns: int
    event: str
    generation: int | None
    member_id: str | None
    partitions: list[tuple[str, int]]
    member_epoch: int | None = None


class OffsetAnswer(msgspec.Struct, tag="answer", array_like=True, frozen=True):
    """One answer that contains an offset.

    `query` says of which request: ListOffsets (`earliest`, `latest` or `time:` and the requested
    ms), OffsetForLeaderEpoch (`epoch:`, the requested epoch and the leader's), a fetch below the
    log start (`before:` and the start that the broker had reported, at `offset`), or InitProducerId
    (`producer`, with the id in `offset`).
    """

    invoke_ns: int
    complete_ns: int
    query: str
    topic: str
    partition: int
    offset: int | None
    node: int | None
    error: str | None
    api_version: int | None = None
    leader_epoch: int | None = None
    timestamp_ms: int | None = None


class TxnBegin(msgspec.Struct, tag="txn", array_like=True, frozen=True):
    """A transaction begins. The init times are those of its producer's initialisation; None if that
    failed."""

    txn: int
    begin_ns: int
    init_invoke_ns: int | None
    init_ns: int | None
    producer_id: int | None = None
    epoch: int | None = None


class TxnCommit(msgspec.Struct, tag="txn commit", array_like=True, frozen=True):
    """The commit of the transaction is about to be requested."""

    txn: int
    invoke_ns: int


class TxnEnd(msgspec.Struct, tag="txn end", array_like=True, frozen=True):
    """The outcome: `committed`, `aborted`, `fenced` or `unknown`.

    `late_end_ns` is when the end of an earlier transaction was delivered during this one.
    """

    txn: int
    end_ns: int
    outcome: str
    error: str | None = None
    late_end_ns: int | None = None


class View(msgspec.Struct, tag="view", array_like=True, frozen=True):
    """A partition in one broker's Metadata response."""

    at_ns: int
    node: int
    topic: str
    partition: int
    leader: int
    leader_epoch: int | None
    """None if the response lacks it: before Metadata 7."""
    in_sync: int = -1
    """The number of in-sync replicas; -1 if the response lacks it."""


class Access(msgspec.Struct, tag="access", array_like=True, frozen=True):
    """An attempt at one broker under ACLs: `ok`, `denied` or `info`."""

    invoke_ns: int
    complete_ns: int
    node: int
    subject: str
    outcome: str
    error: str | None


class Right(msgspec.Struct, tag="right", array_like=True, frozen=True):
    """An administrator granted or revoked a right. `ok`, `fail` for an error before any effect, or
    `info` if the outcome is unknown."""

    invoke_ns: int
    complete_ns: int
    subject: str
    granted: bool
    outcome: str
    error: str | None


class End(msgspec.Struct, tag="end", array_like=True, frozen=True):
    """Last entry of a client that ended by itself. `entries` counts all others."""

    entries: int
    end_ns: int


Entry = (
    Begin | Send | Ok | Fail | Info | Poll | PassBegin | PassEnd | Commit | Committed
    | CommitRead | Delivered | Acknowledge | Acknowledged | Assigned | OffsetAnswer | View
    | TxnBegin | TxnCommit | TxnEnd | Access | Right | End
)  # fmt: skip


class JournalWriter:
    """Appends entries; thread-safe. Every entry is written at once."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path)
        encoder = msgspec.json.Encoder()
        self._encode, self._encode_lines = encoder.encode, encoder.encode_lines
        self._lock = threading.Lock()
        self._entries = 0
        self._closed = False

    def write(self, entry: msgspec.Struct) -> None:
        """Append one entry. OSError when the disk has no room for it."""
        self._append(self._encode(entry), 1)

    def write_all(self, entries: list[Ok]) -> None:
        """Append entries that completed together, which is cheaper than single appends."""
        if entries:
            self._append(self._encode_lines(entries)[:-1], len(entries))

    def _append(self, lines: bytes, entries: int) -> None:
        with self._lock:
            if not self._closed:
                self._file.append(lines)
                self._entries += entries

    def end(self, end_ns: int) -> None:
        """Write the `End` entry and close. Later entries are dropped."""
        with self._lock:
            if not self._closed:
                self._file.append(self._encode(End(self._entries, end_ns)))
                self._close()

    def _close(self) -> None:
        self._closed = True
        self._file.close()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """A journal that an exception ends has no `End`: it is evidence of a broken client."""
        with self._lock:
            if not self._closed:
                self._close()


@dataclass(slots=True)
class JournalState:
    """The state of a journal on disk. `damaged` counts invalid lines in the middle."""

    entries: int = 0
    damaged: int = 0
    unfinished: bool = False
    ended_properly: bool = False
    end_ns: int | None = None


class JournalReader:
    """Reads a journal entry by entry. `state` is complete after the iteration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = JournalState()

    def __iter__(self) -> Iterator[Entry]:
        decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)
        state = self.state
        with self.path.open("rb", buffering=1 << 20) as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    state.unfinished = bool(line.strip(b"\0"))
                    return
                try:
                    entry = decoder.decode(line)
                except msgspec.MsgspecError:
                    state.damaged += 1
                    continue
                if isinstance(entry, End):
                    state.end_ns = entry.end_ns
                    state.ended_properly = entry.entries == state.entries and not state.damaged
                    continue
                state.ended_properly = False
                state.entries += 1
                yield entry
