"""The guarantees, asked of what a simulation left behind: history, ZooKeeper's changes, the logs.

Each function looks for one anomaly of `docs/reference/guarantees.md` and returns sentences. They
share no code with the broker but the record codec, and none with each other.
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.simulation.client import History, Read, Send, records_of
from tests.simulation.storage import Disk
from tests.simulation.zookeeper import Change

Place = tuple[str, int]
Record = tuple[int, str, int]
"""Offset, value, leader epoch."""

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_PRODUCER = struct.Struct(">qhii")
_SEGMENT = re.compile(r"/data/(.+)-(\d+)/(\d{20})\.log")


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica's log on its disk in the end; below `watermark` all must agree."""

    broker: int
    records: tuple[Record, ...]
    batches: tuple[tuple[int, bytes], ...]
    watermark: int


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a leader held of its partition at one moment."""

    at_s: float
    broker: int
    place: Place
    leader_epoch: int
    isr: tuple[int, ...]
    in_flight: bool


@dataclass(slots=True)
class Evidence:
    """All of it. `final` is the log as readers got it in the end, `ends` where it ended."""

    history: History
    changes: list[Change]
    final: dict[Place, list[Read]]
    replicas: dict[Place, list[Replica]]
    glimpses: list[Glimpse]
    min_isr: int
    troubles: list[str] = field(default_factory=list)

    def acked(self) -> Iterator[Send]:
        return (send for send in self.history.sends if send.outcome == "ok")


@dataclass(frozen=True, slots=True)
class Finding:
    guarantee: str
    sentence: str


def judge(evidence: Evidence) -> list[Finding]:
    """Every anomaly, by guarantee."""
    return [Finding(check.__name__, sentence) for check in CHECKS for sentence in check(evidence)]


def read_replicas(disk: Disk, broker: int, watermarks: dict[Place, int]) -> dict[Place, Replica]:
    """The logs on a disk, straight from their segments."""
    parts: dict[Place, list[bytes]] = defaultdict(list)
    for path in sorted(disk.files):
        if match := _SEGMENT.fullmatch(path):
            parts[match[1], int(match[2])].append(bytes(disk.files[path].data))
    found = {}
    for place, segments in parts.items():
        data = b"".join(segments)
        found[place] = Replica(
            broker, tuple(records_of(data)), tuple(_batches(data)), watermarks.get(place, 0)
        )
    return found


def _batches(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
        yield int.from_bytes(data[at : at + 8], "big"), data[at : at + size]
        at += size


# Delivery


def lost_write(evidence: Evidence) -> Iterator[str]:
    there = {(place, read.value) for place, reads in evidence.final.items() for read in reads}
    for send in evidence.acked():
        for value in send.values:
            if ((send.topic, send.partition), value) not in there:
                yield (
                    f"{value}, acknowledged by {send.node} at {send.topic}-{send.partition} "
                    f"offset {send.offset} at {send.end_s:.3f} s, is gone"
                )


def vanished_read(evidence: Evidence) -> Iterator[str]:
    there = {(place, read.value) for place, reads in evidence.final.items() for read in reads}
    seen = {((read.topic, read.partition), read.value) for read in evidence.history.reads}
    for place, value in sorted(seen - there):
        yield f"{value} was read from {place} and is gone"


def phantom(evidence: Evidence) -> Iterator[str]:
    sent = {
        (value, send.topic, send.partition) for send in evidence.history.sends
        for value in send.values
    }  # fmt: skip
    for read in _all_reads(evidence):
        if (read.value, read.topic, read.partition) not in sent:
            yield f"{read.value!r} at {read.topic}-{read.partition} {read.offset} was never sent"


def aborted_read(evidence: Evidence) -> Iterator[str]:
    failed = {value for send in evidence.history.sends if send.outcome == "fail" and
              send.attempts == 1 for value in send.values}  # fmt: skip
    for read in _all_reads(evidence):
        if read.value in failed:
            yield f"{read.value} failed for certain, and is at {read.partition} {read.offset}"


def duplicate(evidence: Evidence) -> Iterator[str]:
    idempotent = {
        value for send in evidence.history.sends if send.producer_id >= 0 for value in send.values
    }
    for place, reads in evidence.final.items():
        at: dict[str, int] = {}
        for read in reads:
            if read.value in idempotent and read.value in at:
                yield f"{read.value} is in {place} at {at[read.value]} and at {read.offset}"
            at.setdefault(read.value, read.offset)


def inconsistent_offset(evidence: Evidence) -> Iterator[str]:
    held: dict[tuple[str, int, int], str] = {}
    for read in _all_reads(evidence):
        slot = (read.topic, read.partition, read.offset)
        if held.setdefault(slot, read.value) != read.value:
            yield f"{slot} held {held[slot]} and {read.value}"
    for send in evidence.acked():
        for n, value in enumerate(send.values if send.offset >= 0 else ()):
            slot = (send.topic, send.partition, send.offset + n)
            if held.get(slot, value) != value:
                yield f"{slot} was acknowledged to {value} and holds {held[slot]}"


def hole(evidence: Evidence) -> Iterator[str]:
    for place, reads in evidence.final.items():
        offsets = [read.offset for read in reads]
        if offsets != list(range(len(offsets))):
            yield f"{place} is read as {_gaps(offsets)}"


def reordered_send(evidence: Evidence) -> Iterator[str]:
    last: dict[tuple[str, str, int], Send] = {}
    for send in evidence.acked():
        if send.producer_id < 0 or send.offset < 0:
            continue
        key = (send.client, send.topic, send.partition)
        if key in last and last[key].offset > send.offset:
            yield f"{send.values[0]} at {send.offset} precedes {last[key].values[0]}"
        last[key] = send


def sequence_gap(evidence: Evidence) -> Iterator[str]:
    for place, replicas in evidence.replicas.items():
        for replica in replicas:
            after: dict[tuple[int, int], int] = {}
            for base, batch in replica.batches:
                producer_id, epoch, sequence, count = _PRODUCER.unpack_from(batch, 43)
                key = (producer_id, epoch)
                if producer_id >= 0 and after.get(key, 0) != sequence:
                    yield (
                        f"{place} on {replica.broker}: {key} has sequence {sequence} at {base} "
                        f"where {after.get(key, 0)} was due"
                    )
                after[key] = sequence + count


def stale_append(evidence: Evidence) -> Iterator[str]:
    by_place: dict[Place, list[Send]] = defaultdict(list)
    for send in evidence.acked():
        if send.offset >= 0:
            by_place[send.topic, send.partition].append(send)
    for sends in by_place.values():
        ends = sorted(sends, key=lambda send: send.end_s)
        at, highest = 0, None
        for send in sorted(sends, key=lambda send: send.begin_s):
            while at < len(ends) and ends[at].end_s < send.begin_s:
                if highest is None or ends[at].offset > highest.offset:
                    highest = ends[at]
                at += 1
            # a batch retried within this send may have been appended in the first attempt,
            # which is still after its begin
            if highest is not None and highest.offset > send.offset:
                yield f"{send.values[0]} at {send.offset}, after {highest.values[0]} was done"


# Replication and elections


def replica_divergence(evidence: Evidence) -> Iterator[str]:
    for place, replicas in evidence.replicas.items():
        below = min((replica.watermark for replica in replicas), default=0)
        logs = [
            (replica.broker, [one for one in replica.batches if one[0] < below])
            for replica in replicas
        ]
        for broker, batches in logs[1:]:
            if batches != logs[0][1]:
                first = next(
                    (a[0] for a, b in zip(batches, logs[0][1], strict=False) if a != b),
                    min(len(batches), len(logs[0][1])),
                )
                yield f"{place}: {broker} and {logs[0][0]} differ from offset {first} on"


def epoch_lineage(evidence: Evidence) -> Iterator[str]:
    for place, replicas in evidence.replicas.items():
        begun: dict[int, tuple[int, int]] = {}
        for replica in replicas:
            highest = -1
            for offset, _, epoch in replica.records:
                if epoch < highest:
                    yield f"{place}: on {replica.broker} epoch {epoch} follows {highest}"
                if epoch > highest and offset < replica.watermark:
                    start, other = begun.setdefault(epoch, (offset, replica.broker))
                    if start != offset:
                        yield (
                            f"{place}: epoch {epoch} begins at {start} on {other}, "
                            f"at {offset} on {replica.broker}"
                        )
                highest = max(highest, epoch)


def two_leaders(evidence: Evidence) -> Iterator[str]:
    led: dict[tuple[Place, int], int] = {}
    for place, _, state in states_of(evidence.changes):
        if state["leader"] >= 0:
            before = led.setdefault((place, state["leader_epoch"]), state["leader"])
            if before != state["leader"]:
                yield f"{place}: {before} and {state['leader']} in epoch {state['leader_epoch']}"
    epochs = {
        (place, read.offset): read.leader_epoch
        for place, reads in evidence.final.items() for read in reads
    }  # fmt: skip
    for send in evidence.acked():
        place = (send.topic, send.partition)
        epoch = epochs.get((place, send.offset))
        # a retry may be answered by a later leader than the one that appended
        leader = None if epoch is None else led.get((place, epoch))
        if send.attempts == 1 and leader not in (None, send.node):
            yield f"{send.values[0]} was taken by {send.node} in epoch {epoch} of {leader}"


def epoch_went_back(evidence: Evidence) -> Iterator[str]:
    last: dict[Place, tuple[int, int]] = {}
    for place, _, state in states_of(evidence.changes):
        now = (state["leader_epoch"], state["controller_epoch"])
        before = last.get(place, (-1, -1))
        if now[0] < before[0] or now[1] < before[1]:
            yield f"{place}: leader and controller epoch {before}, then {now}"
        last[place] = now


def unclean_leader(evidence: Evidence) -> Iterator[str]:
    last: dict[Place, dict[str, int | list[int]]] = {}
    for place, at_s, state in states_of(evidence.changes):
        before = last.get(place)
        if before and state["leader"] >= 0 and state["leader"] not in before["isr"]:  # type: ignore[operator]
            yield f"{place}: {state['leader']} leads from outside {before['isr']} at {at_s:.3f} s"
        last[place] = state


def ack_below_min_isr(evidence: Evidence) -> Iterator[str]:
    """A leader that showed an ISR too small before and after, and the same between, may not
    acknowledge what was invoked and answered in that time."""
    spans: dict[tuple[Place, int], list[tuple[float, float]]] = defaultdict(list)
    begun: dict[tuple[Place, int], Glimpse] = {}
    for one in evidence.glimpses:
        key = (one.place, one.broker)
        before = begun.get(key)
        same = before and (before.isr, before.leader_epoch) == (one.isr, one.leader_epoch)
        if one.in_flight or len(one.isr) >= evidence.min_isr:
            begun.pop(key, None)
        elif same and before:
            spans[key].append((before.at_s, one.at_s))
        else:
            begun[key] = one
    for send in evidence.acked():
        for since, until in spans.get(((send.topic, send.partition), send.node), ()):
            if since < send.begin_s and send.end_s < until and send.attempts == 1:
                yield f"{send.values[0]} at {send.end_s:.3f} s by {send.node}"
                break


def no_progress(evidence: Evidence) -> Iterator[str]:
    yield from evidence.troubles


CHECKS: tuple[Callable[[Evidence], Iterable[str]], ...] = (
    lost_write,
    vanished_read,
    phantom,
    aborted_read,
    duplicate,
    inconsistent_offset,
    hole,
    reordered_send,
    sequence_gap,
    stale_append,
    replica_divergence,
    epoch_lineage,
    two_leaders,
    epoch_went_back,
    unclean_leader,
    ack_below_min_isr,
    no_progress,
)


def states_of(changes: list[Change]) -> Iterator[tuple[Place, float, dict[str, int]]]:
    """Every version of every partition's state."""
    for change in changes:
        match = _STATE.fullmatch(change.path)
        if match and change.data is not None:
            yield (match[1], int(match[2])), change.at_s, json.loads(change.data)


def _all_reads(evidence: Evidence) -> Iterator[Read]:
    yield from evidence.history.reads
    for reads in evidence.final.values():
        yield from reads


def _gaps(offsets: list[int]) -> str:
    for at, offset in enumerate(offsets):
        if at != offset:
            return f"... {offsets[max(0, at - 2) : at + 3]} ..."
    return "nothing"
