"""What the evidence of an imported history proves of transactions, in plain Python, where the
reference checks of guarantees need logs (`torn_txn`, `causal_loss`) or where there is none (the
cycles).

A `History` holds all partitions, since a transaction has records in several of them. Sources:
KIP-98 for what readers of committed records receive; Adya, Liskov, O'Neil, Generalized Isolation
Level Definitions (2000), for the graph, of which every edge is written out: `ww` from each record
to all later ones of a partition, `wr` from a record to each transaction that received it, `rw` from
a transaction to all records behind what it received.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property

from tests.harness.imports.reference import PassKey, Row, Topic, Txn
from urteil.harness.verify.reference import SmallHistory

Edges = dict[Txn, set[Txn]]
SENTENCES = ("torn_txn", "causal_loss")
"""Guarantees whose sentences `History` has."""


@dataclass(frozen=True, slots=True)
class Place:
    """A record of a transaction: its partition, and where a reader would have met it."""

    topic: Topic
    send: Row

    @property
    def offsets(self) -> set[int]:
        """Where readers received it, or else where its acknowledgement says that it lies."""
        at = self.topic.read_at.get(self.send["value_id"], set())
        acked = self.send["outcome"] == "ok" and self.send["offset"] is not None
        return at or ({self.send["offset"]} if acked else set())

    def delivered_by(self) -> set[PassKey]:
        """The complete passes that have it."""
        return {
            (row["client"], row["pass"])
            for row in self.topic.complete_passes
            if any(
                value == self.send["value_id"]
                for _, value in self.topic.records_of_pass[row["client"], row["pass"]]
            )
        }

    def passed_by(self) -> set[PassKey]:
        """The complete passes that went over its place and do not have it. Where all passes over
        one of its places have it, there it lies, whatever others say."""
        over = [set(self.topic.passes_over(offset)) for offset in self.offsets]
        has = self.delivered_by()
        at = [{key for key in keys if self._is_given(offset, key)}
              for offset, keys in zip(self.offsets, over, strict=True)]  # fmt: skip
        if any(keys and keys == given for keys, given in zip(over, at, strict=True)):
            return set()
        return set().union(*over) - has

    def _is_given(self, offset: int, key: PassKey) -> bool:
        return (offset, self.send["value_id"]) in self.topic.records_of_pass[key]

    def name(self) -> str:
        return f"{self.topic.name}@{min(self.offsets, default=0)}"


@dataclass(slots=False)
class History:
    """All partitions of a history; `isolation` is that of its readers."""

    topics: dict[str, Topic]
    isolation: str
    txns: dict[Txn, Row] = field(default_factory=dict)
    small: SmallHistory = field(default_factory=lambda: SmallHistory(settings={}))
    """The same rows for the reference checks of guarantees."""

    @property
    def reads_committed(self) -> bool:
        return self.isolation == "read_committed"

    @cached_property
    def records(self) -> dict[Txn, list[Place]]:
        records: dict[Txn, list[Place]] = defaultdict(list)
        for topic in self.topics.values():
            for send in topic.sends:
                if send["txn"] is not None:
                    records[send["client"], send["txn"]].append(Place(topic, send))
        return records

    def fate(self, txn: Txn) -> str:
        """`unknown` where only its end decides."""
        row = self.txns[txn]
        if row["outcome"] == "committed":
            return "committed"
        return "aborted" if row["commit_invoke_ns"] is None else "unknown"

    # Sentences, by guarantee.

    def torn_txn(self) -> Iterator[str]:
        for txn, places in self.records.items():
            description = self._torn(txn, places) if self.reads_committed else None
            if description is not None:
                yield f"Transaction {txn[1]} of {txn[0]} ({txn[0]}) {description}."

    def _torn(self, txn: Txn, places: list[Place]) -> str | None:
        shown = [place for place in places if place.delivered_by()]
        missing = [
            place for place in places
            if place.send["outcome"] == "ok" and place not in shown
            if any(place.topic.passes_over(offset) for offset in place.offsets)
        ]  # fmt: skip
        fate, number = self.fate(txn), len(places)
        if fate == "aborted":
            if not shown:
                return None
            return (
                "was not committed, nor was its commit requested, yet "
                f"{len(shown)} of its {number} records are visible, the first at "
                f"{self._first(shown)}"
            )
        if shown and missing and fate == "unknown":
            return (
                f"is visible in part: {len(shown)} of its {number} records are visible and "
                f"{len(missing)} are not, the first at {self._first(missing)}"
            )
        if shown and missing:
            return (
                f"was committed, yet no complete pass of a reader of committed records delivered "
                f"{len(missing)} of its {number} records, the first at {self._first(missing)}"
            )
        torn = [
            place for place in places
            if place.send["outcome"] != "fail"
            if any(key in other.delivered_by() for key in place.passed_by()
                   for other in places if other.topic is place.topic and other is not place)
        ]  # fmt: skip
        if not torn:
            return None
        return (
            f"is visible in part: a complete pass over {self._first(torn).split('@')[0]} delivered "
            f"some of its {number} records, and passed over others, the first at "
            f"{self._first(torn)}"
        )

    def _first(self, places: list[Place]) -> str:
        numbers = [self.topics[name] for name in sorted(self.topics)]
        return min(
            places, key=lambda place: (numbers.index(place.topic), min(place.offsets, default=0))
        ).name()

    def causal_loss(self) -> Iterator[str]:
        for topic in self.topics.values():
            for send in topic.sends:
                if topic.how_lost(send) is None:
                    continue
                at, value = topic.read_at.get(send["value_id"], set()), send["value_id"]
                offset = min(at) if at else send["offset"]
                place = topic.name if offset is None else f"{topic.name}@{offset}"
                knew = [("acknowledged", send["client"], send["complete_ns"])]
                knew = knew if send["outcome"] == "ok" else []
                knew += [("read", row["client"], row["read_ns"]) for row in topic.reads
                         if row["value_id"] == value]  # fmt: skip
                description = {(how, who) for how, who, at_ns in knew if at_ns < self._last_ns(who)}
                for how, who in description:
                    yield (
                        f"{who} knew of {value} at {place} ({how}), which is lost, before it sent "
                        "records that survive."
                    )

    def _last_ns(self, client: str) -> int:
        """When it sent the last of its records that somebody received and that is not lost."""
        times = [
            send["invoke_ns"] for topic in self.topics.values() for send in topic.sends
            if send["client"] == client and send["value_id"] in topic.read_at
            if topic.how_lost(send) is None
        ]  # fmt: skip
        return max(times, default=-1)

    # The graph of transactions.

    @cached_property
    def wrote(self) -> dict[str, Txn]:
        """Who wrote each value that may be in a log."""
        return {
            place.send["value_id"]: txn
            for txn, places in self.records.items()
            if self.fate(txn) != "aborted"
            for place in places
            if place.send["outcome"] != "fail"
        }

    def log(self, topic: Topic) -> list[tuple[int, Txn]]:
        """The records of transactions whose places are known: by their acknowledgement, or by a
        reader, who proves a commit only if it reads committed records."""
        readers = []
        for send in topic.sends:
            txn = self.wrote.get(send["value_id"])
            if txn is None:
                continue
            if send["outcome"] == "ok" and send["offset"] is not None:
                readers.append((send["offset"], txn))
            elif self.reads_committed or self.fate(txn) == "committed":
                at = topic.read_at.get(send["value_id"])
                readers += [(min(at), txn)] if at else []
        return sorted(readers)

    @cached_property
    def edges(self) -> dict[str, Edges]:
        """`ww`, `wr`, `rw`: from one transaction to others."""
        edges_by_kind: dict[str, Edges] = {kind: defaultdict(set) for kind in ("ww", "wr", "rw")}
        for topic in self.topics.values():
            log = self.log(topic)
            for n, (_, before) in enumerate(log):
                edges_by_kind["ww"][before] |= {after for _, after in log[n + 1 :]} - {before}
            last: dict[Txn, int] = {}
            for row in topic.reads:
                reader = row["client"], row["txn"]
                if row["txn"] is None or self.txns.get(reader) is None:
                    continue
                if self.fate(reader) == "aborted":
                    continue
                last[reader] = max(last.get(reader, -1), row["offset"])
                writer = self.wrote.get(row["value_id"])
                if writer is not None and writer != reader:
                    edges_by_kind["wr"][writer].add(reader)
            for reader, offset in last.items():
                edges_by_kind["rw"][reader] |= {txn for at, txn in log if at > offset} - {reader}
        return edges_by_kind

    def knots(self, *kinds: str, closing: str) -> set[frozenset[Txn]]:
        """Sets of transactions that reach each other by edges of `kinds`, one of `closing` among
        them."""
        after: Edges = defaultdict(set)
        for kind in kinds:
            for txn, others in self.edges[kind].items():
                after[txn] |= others
        reach = {txn: reached(after, txn) for txn in list(after)}
        components = set()
        for left, others in self.edges[closing].items():
            for right in others:
                if left in reach.get(right, ()):
                    both = reach[right] & {txn for txn in reach if right in reach[txn]}
                    components.add(frozenset(both))
        return components

    def has_read_skew(self) -> bool:
        """Whether one `rw` edge closes a circle of the others."""
        after: Edges = defaultdict(set)
        for kind in ("ww", "wr"):
            for txn, others in self.edges[kind].items():
                after[txn] |= others
        return any(
            left in reached(after, right)
            for left, others in self.edges["rw"].items() for right in others
        )  # fmt: skip


def reached(after: Edges, begin: Txn) -> Set[Txn]:
    """All that lies one edge and more behind a transaction."""
    reached_txns: set[Txn] = set()
    left = [begin]
    while left:
        new = after.get(left.pop(), set()) - reached_txns
        reached_txns |= new
        left += new
    return reached_txns
