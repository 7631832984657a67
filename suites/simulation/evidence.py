"""What a simulation left behind: history, ZooKeeper's changes, the logs on disks."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from urteil.broker.wire.batches import iter_records, parse_header
from urteil.broker.wire.primitives import CorruptBatch
from urteil.harness.evidence.readers.index_files import INDEXES, Layout, index_rows
from urteil.suites.simulation.disturbances import Disturbance, Stop
from urteil.suites.simulation.fetched_records import control_kind
from urteil.suites.simulation.history import History, Read, Send
from urteil.suites.simulation.storage import Disk
from urteil.suites.simulation.zookeeper import Change

Place = tuple[str, int]
_STATE = re.compile(r"/brokers/topics/(?!__)([^/]+)/partitions/(\d+)/state")
_SEGMENT = re.compile(r"/data/(?!__)(.+)-(\d+)/(\d{20})\.log")
"""Topics of the brokers' own are not judged."""
COMMITTED = "final committed"
OFFSETS_STATE = "/brokers/topics/__consumer_offsets/partitions/0/state"


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica's log on its disk in the end; below `watermark` all must agree."""

    broker: int
    batches: tuple[tuple[int, bytes], ...]
    watermark: int
    log_start: int = 0
    segments: tuple[int, ...] = (0,)
    """Their base offsets."""
    epochs: Mapping[int, int] | None = None
    """Epoch to its start offset, as in the broker's checkpoint of epochs; None without one."""
    indexes: tuple[dict[str, Any], ...] = ()
    """The rows of `indexes`, without the columns of the log."""


@dataclass(frozen=True, slots=True)
class Promises:
    """The settings of topics that brokers keep logs by, and when they had to have done it."""

    configs: Mapping[str, str] = field(default_factory=dict)
    late_s: float = 0.0
    """How long after its time a segment may still be."""
    calm_s: float = 0.0
    """When all was healed."""
    ends_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a leader held of its partition at one moment."""

    at_s: float
    broker: int
    place: Place
    leader_epoch: int
    isr: tuple[int, ...]
    in_flight: bool
    log_start: int = 0


@dataclass(slots=True)
class Evidence:
    """All of it. `final` is the log as readers got it in the end."""

    history: History
    changes: list[Change]
    final: dict[Place, list[Read]]
    replicas: dict[Place, list[Replica]]
    """Of partitions that exist in the end, on the brokers assigned to them."""
    glimpses: list[Glimpse]
    min_isr: int
    troubles: list[str] = field(default_factory=list)
    committed: dict[Place, tuple[list[Read], int]] = field(default_factory=dict)
    """The log as readers of committed records got it in the end, and where it ended for them."""
    txns_over_s: float | None = None
    """When every transaction had to have ended."""
    promises: Promises = field(default_factory=Promises)
    begins: dict[tuple[str, Place], int] = field(default_factory=dict)
    """Where the last pass of a reader over a partition began."""
    healed_s: float = 0.0
    """When the last fault was undone."""
    healthy_s: float | None = None
    """When the cluster was healthy after that; None if it never was."""
    swept_s: dict[tuple[str, Place], float] = field(default_factory=dict)
    """When that pass began."""
    broken_off: set[tuple[str, Place]] = field(default_factory=set)
    """The last passes that did not reach the end."""
    disturbances: list[Disturbance] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    """The controlled shutdowns."""
    lasting_files: list[tuple[int, str]] = field(default_factory=list)
    """Broker and path of the deleted files that remained from the recovery to the end."""
    folders: dict[int, list[str]] = field(default_factory=dict)
    """Those on each broker's disk in the end."""
    brokers_of_wrong_clocks: set[int] = field(default_factory=set)

    def acked(self) -> Iterator[Send]:
        return (send for send in self.history.sends if send.outcome == "ok")


def read_replicas(disk: Disk, broker: int, logs: Mapping[Place, Any]) -> dict[Place, Replica]:
    """The logs on a disk, straight from their segments; `logs` are the broker's own."""
    segments_of: dict[Place, dict[int, bytes]] = defaultdict(dict)
    indexes_of: dict[Place, list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(disk.files):
        if match := _SEGMENT.fullmatch(path):
            data = bytes(disk.files[path].data)
            place = match[1], int(match[2])
            segments_of[place][int(match[3])] = data
            indexes_of[place] += _index_rows(disk, path, data)
    replicas = {}
    for place, segments in segments_of.items():
        log = logs.get(place)
        replicas[place] = Replica(
            broker,
            tuple(_batches(b"".join(segments.values()))),
            log.high_watermark if log else 0,
            log.log_start_offset if log else 0,
            tuple(segments),
            _read_epochs(disk, place),
            tuple(indexes_of[place]),
        )
    return replicas


def _index_rows(disk: Disk, segment: str, data: bytes) -> Iterator[dict[str, Any]]:
    """The rows of the three indexes of a segment file, of which the last batch may be torn."""
    layout = Layout()
    for base, batch in _batches(data):
        try:
            header = parse_header(batch)
        except CorruptBatch:
            break
        layout.add(len(batch), base, header.last_offset, header.max_timestamp)
        if header.is_control:
            (marker,) = iter_records(batch)
            layout.controls[base] = control_kind(marker)
    stem = segment.removesuffix(".log")
    for kind, (suffix, _) in INDEXES.items():
        file = disk.files.get(stem + suffix)
        if file is not None:
            yield from index_rows(int(stem[-20:]), kind, bytes(file.data), layout)


def _read_epochs(disk: Disk, place: Place) -> dict[int, int] | None:
    """A broker's checkpoint of leader epochs: a version, a count, and a line for each epoch."""
    file = disk.files.get(f"/data/{place[0]}-{place[1]}/leader-epoch-checkpoint")
    if file is None:
        return None
    lines = bytes(file.data).decode().split("\n")[2:]
    return {int(epoch): int(start) for epoch, start in (line.split() for line in lines if line)}


def _batches(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
        yield int.from_bytes(data[at : at + 8], "big"), data[at : at + size]
        at += size


def final_leaders(evidence: Evidence) -> dict[Place, int]:
    """The last leader of each partition."""
    return {
        place: state["leader"]
        for place, _, state in states_of(evidence.changes)
        if state["leader"] >= 0
    }


def leaderless(evidence: Evidence) -> set[Place]:
    """Partitions of which the last leader left no log, or of which no state is known. Those of
    deleted topics have none."""
    led = final_leaders(evidence)
    held = {(place, record.broker) for place, some in evidence.replicas.items() for record in some}
    places = {*evidence.final, *evidence.replicas, *led}
    places |= {(send.topic, send.partition) for send in evidence.history.sends}
    exists = {change.path: change.data is not None for change in evidence.changes}
    return {
        place
        for place in places
        if (place, led.get(place)) not in held and exists.get(f"/brokers/topics/{place[0]}", True)
    }


def states_of(changes: list[Change]) -> Iterator[tuple[Place, Change, dict[str, Any]]]:
    """Every version of every partition's state."""
    for change in changes:
        match = _STATE.fullmatch(change.path)
        if match and change.data is not None:
            yield (match[1], int(match[2])), change, json.loads(change.data)
