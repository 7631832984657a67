"""What the evidence of an imported history proves, in plain Python, where no log is needed.

A history has no logs. The reference checks of guarantees (`harness/verify/reference.py`) judge it
where they need none: `SHARED`. Those of the others compare with the final leader's log. Here passes
take its place: a record that a client read was in the log, and a complete pass over an offset
received every record that it was due there. So the passes alone show a record that is lost,
misplaced or out of order. `Topic` holds the evidence of one partition, and returns the sentences of
all findings of these guarantees. `unread` returns the due records that no client read and that are
not proven lost. A history is PASS only if no guarantee has a sentence and no topic has an unread
record.

Written for small histories: everything is compared with everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
PassKey = tuple[str, int]
Txn = tuple[str, int]


@dataclass(slots=False)
class Topic:
    """The rows of one partition `name`. `txns` are those of the complete history. `proven` has, for
    transactions of unknown end, the first time at which a reader of committed records received one
    of their records."""

    name: str
    sends: list[Row] = field(default_factory=list)
    reads: list[Row] = field(default_factory=list)
    passes: list[Row] = field(default_factory=list)
    txns: dict[Txn, Row] = field(default_factory=dict)
    proven: dict[Txn, int] = field(default_factory=dict)
    ends_ns: int | None = None
    """When a final pass last requested the end of the log; None if none was recorded."""

    @cached_property
    def read_at(self) -> dict[str, set[int]]:
        """Each value that was read, with its offsets."""
        offsets: dict[str, set[int]] = defaultdict(set)
        for row in self.reads:
            offsets[row["value_id"]].add(row["offset"])
        return dict(offsets)

    @cached_property
    def records_of_pass(self) -> dict[PassKey, set[tuple[int, str]]]:
        """Offset and value of the records that each pass received."""
        records: dict[PassKey, set[tuple[int, str]]] = defaultdict(set)
        for row in self.reads:
            records[row["client"], row["pass"]].add((row["offset"], row["value_id"]))
        return records

    @cached_property
    def complete_passes(self) -> list[Row]:
        """Final passes that went over all of their range."""
        return [row for row in self.passes if row["final"] and row["complete"]]

    def passes_over(self, offset: int) -> list[PassKey]:
        """The complete final passes whose range has the offset."""
        return [
            (row["client"], row["pass"])
            for row in self.complete_passes
            if row["from_offset"] <= offset < row["to_offset"]
        ]

    def is_committed(self, send: Row) -> bool:
        """In no transaction, or in one of which its end, or a reader, shows that it committed."""
        if send["txn"] is None:
            return True
        key = send["client"], send["txn"]
        return self.txns[key]["outcome"] == "committed" or key in self.proven

    def is_due(self, send: Row) -> bool:
        """Whether the record must be in the log, by its acknowledgement or its transaction."""
        if send["outcome"] == "ok":
            return self.is_committed(send)
        return send["outcome"] == "info" and (send["client"], send["txn"]) in self.proven

    def is_delivered(self, value: str) -> bool:
        return any(
            value == given
            for row in self.complete_passes
            for _, given in self.records_of_pass[row["client"], row["pass"]]
        )

    def bounds(self, send: Row) -> tuple[int | None, int | None]:
        """The offsets that a record of unknown place lies between."""
        done_ns = send["complete_ns"]
        if send["outcome"] != "ok":
            done_ns = self.proven[send["client"], send["txn"]]
        low = high = None
        for other in self.sends:
            place = self.place(other)
            if place is None:
                continue
            if self.known_ns(other) < send["invoke_ns"]:
                low = place if low is None else max(low, place)
            if other["invoke_ns"] > done_ns:
                high = place if high is None else min(high, place)
        if self.ends_ns is not None and done_ns < self.ends_ns:
            end = max((row["to_offset"] for row in self.complete_passes), default=None)
            high = end if high is None else high if end is None else min(high, end)
        return low, high

    def place(self, send: Row) -> int | None:
        """The offset of a record by its acknowledgement, else by the reads of it."""
        if send["outcome"] == "ok" and send["offset"] is not None:
            return int(send["offset"])
        return min(self.read_at.get(send["value_id"], ()), default=None)

    def known_ns(self, send: Row) -> int:
        """The first time at which the record is known to be in the log."""
        times = [row["read_ns"] for row in self.reads if row["value_id"] == send["value_id"]]
        return min([*times, send["complete_ns"]] if send["outcome"] == "ok" else times)

    def is_passed_over(self, low: int | None, high: int | None) -> bool:
        """Whether passes went over every offset between two bounds, and at least meet them."""
        begin = 0 if low is None else low + 1
        return high is not None and any(
            first <= begin <= high <= last for first, last in self.stretches()
        )

    def stretches(self) -> list[tuple[int, int]]:
        """Ranges of offsets that passes went over; adjoining ranges are merged."""
        stretches: list[tuple[int, int]] = []
        for first, last in sorted(
            (row["from_offset"], row["to_offset"]) for row in self.complete_passes
        ):
            if stretches and first <= stretches[-1][1]:
                stretches[-1] = stretches[-1][0], max(last, stretches[-1][1])
            else:
                stretches.append((first, last))
        return stretches

    # Sentences, by guarantee.

    def lost_write(self) -> Iterator[str]:
        for send in self.sends:
            how = self.how_lost(send)
            if how is not None:
                yield f"{send['value_id']} (acks=all) {how}."

    def how_lost(self, send: Row) -> str | None:
        value, at = send["value_id"], self.read_at.get(send["value_id"], set())
        if self.is_delivered(value) or not self.is_committed(send):
            return None
        delivered = "but no complete final pass over that offset delivered it"
        if at:
            shown = send["outcome"] != "fail" and any(self.passes_over(offset) for offset in at)
            return f"was read at {self.name}@{min(at)}, {delivered}" if shown else None
        if send["outcome"] == "ok" and send["offset"] is not None:
            asked = self.passes_over(send["offset"])
            return (
                f"was acknowledged at {self.name}@{send['offset']}, {delivered}" if asked else None
            )
        if not self.is_due(send):
            return None
        low, high = self.bounds(send)
        if not self.is_passed_over(low, high):
            return None
        begin = "its begin" if low is None else f"offset {low}"
        return (
            f"was appended to {self.name} without a known offset, between {begin} and offset "
            f"{high}, but complete final passes over all of that did not deliver it"
        )

    def unseen(self) -> Iterator[str]:
        end = max((row["to_offset"] for row in self.complete_passes), default=None)
        for send in self.sends:
            if self.is_beyond(send):
                yield (
                    f"{send['value_id']} was acknowledged at {self.name}@{send['offset']}, but no "
                    f"final pass received an end beyond {end}."
                )

    def is_beyond(self, send: Row) -> bool:
        end = max((row["to_offset"] for row in self.complete_passes), default=None)
        if None in (self.ends_ns, end, send["offset"]) or send["outcome"] != "ok":
            return False
        is_reported = send["complete_ns"] < self.ends_ns and send["offset"] >= end
        return bool(is_reported and not self.is_delivered(send["value_id"]))

    def unread(self) -> list[str]:
        """The values of due records that no client read and that are not proven lost."""
        return [
            send["value_id"]
            for send in self.sends
            if self.is_due(send) and send["value_id"] not in self.read_at
            if self.how_lost(send) is None and not self.is_beyond(send)
        ]

    def vanished_read(self) -> Iterator[str]:
        fates = {send["value_id"]: self.fate(send) for send in self.sends}
        for offset, value in sorted({(row["offset"], row["value_id"]) for row in self.reads}):
            over = self.passes_over(offset)
            having = [key for key in over if (offset, value) in self.records_of_pass[key]]
            if len(having) < len(over) and fates.get(value, "committed") == "committed":
                yield (
                    f"{value} was read at {self.name}@{offset}, but only {len(having)} of "
                    f"{len(over)} complete final passes over that offset delivered it."
                )

    def fate(self, send: Row) -> str:
        if send["txn"] is None:
            return "committed"
        return str(self.txns[send["client"], send["txn"]]["outcome"])

    def misplaced_ack(self) -> Iterator[str]:
        for send in self.sends:
            at = self.read_at.get(send["value_id"], set())
            acked = send["outcome"] == "ok" and send["offset"] is not None
            if acked and at and send["offset"] not in at:
                yield (
                    f"{send['value_id']} was acknowledged at {self.name}@{send['offset']}, but "
                    f"was read at offset {min(at)}, and at the acknowledged one by no client."
                )

    def reordered_send(self) -> Iterator[str]:
        by_client: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for send in sorted(self.sends, key=lambda send: int(send["op"])):
            at = self.read_at.get(send["value_id"], set())
            certain = send["outcome"] == "ok" or (
                send["outcome"] == "info" and send["txn"] is not None and self.is_committed(send)
            )
            asked = send["offset"] is not None and self.passes_over(send["offset"])
            place = min(at) if at else None if asked else send["offset"]
            if certain and place is not None:
                by_client[send["client"]].append((place, send["value_id"]))
        for client, sends in by_client.items():
            for (low, first), (high, second) in pairwise(sends):
                if high < low:
                    yield (
                        f"{client} sent {first} first and {second} after it, but they lie at "
                        f"offsets {low} and {high} of {self.name}."
                    )


SHARED = (
    *("poll_skip", "nonmonotonic_poll", "duplicate", "inconsistent_offset", "aborted_read"),
    *("stale_append", "phantom", "future_read", "precommitted_read", "corrupt"),
)
"""Guarantees that are judged by their own reference checks."""
GUARANTEES = ("lost_write", "unseen", "vanished_read", "misplaced_ack", "reordered_send")
"""Guarantees whose sentences `Topic` has."""


def topics_of(tables: dict[str, list[Row]], ends_ns: dict[str, int]) -> dict[str, Topic]:
    """The partitions of a history's evidence, by topic."""
    txns = {(row["client"], row["txn"]): row for row in tables["txns"]}
    writers = {row["value_id"]: row for row in tables["sends"]}
    hasty = {row["client"] for row in tables["clients"] if row["isolation"] != "read_committed"}
    proven: dict[Txn, int] = {}
    for read in tables["reads"]:
        send = writers.get(read["value_id"])
        if send is None or send["txn"] is None or read["client"] in hasty:
            continue
        key = send["client"], send["txn"]
        if txns[key]["outcome"] == "unknown":
            proven[key] = min(read["read_ns"], proven.get(key, read["read_ns"]))
    topics: dict[str, Topic] = {}
    for table in ("sends", "reads", "passes"):
        for row in tables[table]:
            name = row["topic"]
            topic = topics.setdefault(
                name, Topic(f"{name}-0", txns=txns, proven=proven, ends_ns=ends_ns.get(name))
            )
            getattr(topic, table).append(row)
    return topics
