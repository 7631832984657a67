"""Leadership over time: versions of a partition's state as spans, and the floors of its epochs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import CLOCK_SLACK_NS, FOREVER_NS, NO_OFFSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One version of a partition's state, from its write to the next; `previous` is the version
    before."""

    version: int
    begin_ns: int
    end_ns: int
    leader: int
    leader_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    topic: str
    path: str
    previous: Span | None

    @property
    def begins_epoch(self) -> bool:
        return self.previous is None or self.previous.leader_epoch != self.leader_epoch

    @property
    def isr_before(self) -> tuple[int, ...]:
        """The last non-empty ISR before this version; empty if there was none."""
        before = self.previous
        while before is not None and not before.isr:
            before = before.previous
        return before.isr if before else ()

    @property
    def unclean(self) -> bool:
        """Whether the new leader was neither in the last non-empty ISR nor an eligible leader
        replica."""
        before = self.previous
        return (
            before is not None
            and self.leader >= 0
            and self.leader != before.leader
            and bool(self.isr_before)
            and self.leader not in self.isr_before
            and self.leader not in before.elr
        )

    def foreign_isr_members(self, replicas: Collection[int]) -> str | None:
        """New members of the ISR that never were replicas, as text. None if there are none, or no
        replicas are known. (A replica whose reassignment is cancelled may stay in the ISR for a
        moment.)"""
        before = self.previous.isr if self.previous else ()
        others = sorted(set(self.isr) - set(replicas) - set(before)) if replicas else []
        return ", ".join(map(str, others)) or None

    def row(self) -> Row:
        """The span as a row of the derived table `state_spans`."""
        before = self.previous
        return {
            "version": self.version,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "controller_epoch": self.controller_epoch,
            "isr": _text(self.isr),
            "isr_size": len(self.isr),
            "prev_version": before.version if before else None,
            "prev_leader": before.leader if before else None,
            "prev_leader_epoch": before.leader_epoch if before else None,
            "prev_controller_epoch": before.controller_epoch if before else None,
            "prev_isr": _text(self.isr_before) if before else None,
            "prev_elr": _text(before.elr) if before else None,
            "path": self.path,
        }


def _text(isr: tuple[int, ...]) -> str:
    """`,1,2,` so that membership is a plain LIKE on every engine."""
    return "," + "".join(f"{member}," for member in isr)


def spans_of(states: Iterable[Row], numbers: dict[tuple[str, int], int]) -> dict[int, list[Span]]:
    """The versions of each partition's state in the order ZooKeeper committed them (zxid)."""
    spans: dict[int, list[Row]] = defaultdict(list)
    for row in states:
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None:
            spans[p].append(row)
    for rows in spans.values():
        rows.sort(key=lambda row: int(row["zxid"]))
    return {p: chain for p, rows in spans.items() if (chain := _chain(rows))}


def _chain(rows: list[Row]) -> list[Span]:
    chain: list[Span] = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row["leader_epoch"] is None:  # the topic was deleted
            continue
        controller_epoch = row["controller_epoch"]
        if controller_epoch is None:  # unknown: assumed unchanged
            controller_epoch = chain[-1].controller_epoch if chain else 0
        chain.append(
            Span(
                version=row["version"],
                begin_ns=row["at_ns"],
                end_ns=after["at_ns"] if after else FOREVER_NS,
                leader=-1 if row["leader"] is None else row["leader"],
                leader_epoch=row["leader_epoch"],
                controller_epoch=controller_epoch,
                isr=tuple(json.loads(row["isr"] or "[]")),
                elr=tuple(json.loads(row.get("elr") or "[]")),
                topic=row["topic"] or "",
                path=row["path"] or "",
                previous=chain[-1] if chain else None,
            )
        )
    return chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """For a send invoked in [from_ns, to_ns): the lowest offset at which a later epoch started.

    No later election can have truncated records below the floor. `NO_OFFSET` when no later epoch
    began; 0 where the partition's elections are unknown.
    """

    from_ns: int
    to_ns: int
    any_floor: int
    unclean_floor: int
    leader: int | None = None
    """The leader at that time, by ZooKeeper."""
    lost_floor: int = NO_OFFSET
    """Faults destroyed the records from this offset on in every in-sync replica (see `harm`)."""

    def row(self) -> Row:
        """The floor as a row of the derived table `floors`."""
        return {
            "from_ns": self.from_ns,
            "to_ns": self.to_ns,
            "leader": self.leader,
            "any_floor": self.any_floor,
            "unclean_floor": self.unclean_floor,
            "lost_floor": None if self.lost_floor >= NO_OFFSET else self.lost_floor,
        }


def floors(
    spans: list[Span], starts: dict[int, int], log_end: int, lost: Mapping[int, int] | None = None
) -> list[Floor]:
    """Floors of one partition from its states and its final leader's epoch starts and end.

    `lost` maps each epoch that an unclean election removed completely to its first offset.
    """
    begun = [(span.begin_ns + CLOCK_SLACK_NS, span) for span in spans if span.begins_epoch]
    if not spans:
        return [_floor(-FOREVER_NS, FOREVER_NS, 0, 0)]
    floors: list[Floor] = []
    any_floor = unclean_floor = NO_OFFSET
    to_ns = FOREVER_NS
    for begin_ns, span in reversed(begun):
        floors.append(_floor(begin_ns, to_ns, any_floor, unclean_floor, span.leader))
        to_ns = begin_ns
        if span.previous is None and span.version == 0:  # created without records
            continue
        start = _start(span.leader_epoch, starts, log_end)
        if span.unclean:
            start = min([start, *_lost_epoch_starts(span, starts, lost or {})])
        any_floor = min(any_floor, start)
        if span.unclean:
            unclean_floor = min(unclean_floor, start)
    floors.append(_floor(-FOREVER_NS, to_ns, any_floor, unclean_floor))
    return [floor for floor in floors if floor.from_ns < floor.to_ns]


def _floor(
    from_ns: int, to_ns: int, any_floor: int, unclean_floor: int, leader: int | None = None
) -> Floor:
    return Floor(
        from_ns=from_ns,
        to_ns=to_ns,
        any_floor=any_floor,
        unclean_floor=unclean_floor,
        leader=leader,
    )


def _lost_epoch_starts(
    span: Span, starts: Mapping[int, int], lost: Mapping[int, int]
) -> Iterator[int]:
    """The first offsets of the epochs right before an unclean one that the final log does not
    contain."""
    before = span.previous
    while before is not None and before.leader_epoch not in starts:
        if before.leader_epoch in lost:
            yield lost[before.leader_epoch]
        before = before.previous


def _start(epoch: int, starts: dict[int, int], log_end: int) -> int:
    """The first offset of an epoch. An epoch without records began where the next one did, or at
    the end."""
    return min((start for known, start in starts.items() if known >= epoch), default=log_end)
