"""Random histories of transactions over lists, and their anomalies by brute force.

A history has few transactions and a list for each partition; a value is appended once. Most reads
go on from where the client stood; some return any records at all, also such as no broker may serve.
The brute force takes every pair of records and of transactions, not the next neighbours, and
closes relations by trying all transactions in between.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify import evidence

Row = dict[str, Any]
Edge = tuple[str, str]
CLIENTS, PARTITIONS = ("a", "b", "c"), 2
TOPIC_ID = "id"
NUMBERS = {(TOPIC_ID, p): p for p in range(PARTITIONS)}
NAMES = {p: f"list-{p}" for p in range(PARTITIONS)}
WILD = 0.15
"""The share of reads that return any record."""


@dataclass
class ListHistory:
    """Lists of (offset, transaction), and the reads of transactions."""

    txns: list[Row] = field(default_factory=list)
    lists: dict[int, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    reads: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def alive(self) -> list[str]:
        return [name_of(txn) for txn in self.txns if txn["fate"] != "aborted"]

    def writer(self, p: int, offset: int) -> str | None:
        return dict(self.lists[p]).get(offset)

    def position(self, reader: str, p: int) -> int | None:
        return max((o for name, q, o in self.reads if (name, q) == (reader, p)), default=None)

    # Relations between transactions that are not aborted, each of all pairs.

    def ww(self) -> set[Edge]:
        return self._alive(
            (left, right)
            for records in self.lists.values()
            for before, left in records
            for after, right in records
            if before < after
        )

    def wr(self) -> set[Edge]:
        return self._alive((self.writer(p, o), reader) for reader, p, o in self.reads)

    def rw(self) -> set[Edge]:
        return self._alive(
            (reader, writer)
            for reader, p in {(reader, p) for reader, p, _ in self.reads}
            for offset, writer in self.lists[p]
            if offset > (self.position(reader, p) or 0)
        )

    def rt(self) -> set[Edge]:
        return self._alive(
            (name_of(left), name_of(right))
            for left, right in product(self.txns, self.txns)
            if left["outcome"] == "committed" and left["end_ns"] < right["begin_ns"]
        )

    def _alive(self, edges: Any) -> set[Edge]:
        alive = set(self.alive)
        return {(a, b) for a, b in edges if a != b and a in alive and b in alive}

    # Anomalies of pairs, by their definitions.

    def lost_updates(self) -> set[tuple[str, int]]:
        """Reader and partition."""
        return {
            (reader, p)
            for reader, p, _ in self.reads
            for missed, writer in self.lists[p]
            for appended, own in self.lists[p]
            if reader in self.alive and writer in self.alive
            if own == reader != writer and (self.position(reader, p) or 0) < missed < appended
        }

    def partial_reads(self) -> set[tuple[str, str, str, int]]:
        """Kind, writer, reader and partition."""
        found = set()
        for writer, reader in self.wr():
            for p in {q for name, q, _ in self.reads if name == reader}:
                offsets = [o for o, name in self.lists[p] if name == writer]
                position = self.position(reader, p) or 0
                if offsets and position < offsets[-1]:
                    kind = "g1b" if offsets[0] <= position else "fractured"
                    found.add((kind, writer, reader, p))
        return found

    # Evidence.

    def write(self, run_dir: Path) -> None:
        common = {"run": "r", "topic_id": TOPIC_ID, "topic": "list", "session": 0}
        begun = {name_of(txn): txn["begin_ns"] for txn in self.txns}
        sends = [
            common | {"client": name[0], "txn": int(name[2:]), "partition": p, "offset": offset,
                      "value_id": f"r/{p}/{offset}", "outcome": "ok",
                      "invoke_ns": begun[name]}
            for p, records in self.lists.items() for offset, name in records
        ]  # fmt: skip
        reads = [
            common | {"client": name[0], "txn": int(name[2:]), "partition": p, "offset": offset,
                      "value_id": f"r/{p}/{offset}", "poll": n, "pass": p,
                      "read_ns": begun[name]}
            for n, (name, p, offset) in enumerate(self.reads)
        ]  # fmt: skip
        clients = [common | {"client": name, "isolation": "read_committed"} for name in CLIENTS]
        txns = [common | {name: txn[name] for name in txn if name in SCHEMAS["txns"].names}
                for txn in self.txns]  # fmt: skip
        tables = {"sends": sends, "reads": reads, "clients": clients, "txns": txns}
        for table, rows in tables.items():
            evidence.write_rows(run_dir / "evidence" / table, SCHEMAS[table], rows)


def name_of(txn: Row) -> str:
    return f"{txn['client']}/{txn['txn']}"


def random_history(seed: int, size: int = 7) -> ListHistory:
    """This number of transactions of three clients, interleaved step by step."""
    rng = random.Random(seed)
    history = ListHistory()
    open_txns: dict[str, Row] = {}
    stood: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    now = 0
    while len(history.txns) < size or open_txns:
        now += 1
        client = rng.choice(CLIENTS)
        txn = open_txns.get(client)
        if txn is None:
            if len(history.txns) < size:
                txn = {"client": client, "session": 0, "txn": len(history.txns), "begin_ns": now}
                history.txns.append(txn)
                open_txns[client] = txn
            continue
        name, p = name_of(txn), rng.randrange(PARTITIONS)
        act = rng.random()
        if act < 0.4:
            last = history.lists[p][-1][0] if history.lists[p] else -1
            history.lists[p].append((last + rng.choice((1, 1, 2)), name))
        elif act < 0.75:
            _read(history, rng, name, p, stood)
        else:
            _end(txn, now, rng.choice(("committed", "committed", "aborted", "unknown")))
            del open_txns[client]
    return history


def _read(
    history: ListHistory, rng: random.Random, name: str, p: int, stood: dict[tuple[str, int], int]
) -> None:
    offsets = [offset for offset, _ in history.lists[p]]
    if offsets and rng.random() < WILD:
        history.reads.append((name, p, rng.choice(offsets)))
        return
    client = name[0]
    upto = rng.choice(offsets) if offsets else -1
    for offset in offsets:
        if stood[client, p] < offset <= upto:
            history.reads.append((name, p, offset))
    stood[client, p] = max(stood[client, p], upto)


def _end(txn: Row, now: int, outcome: str) -> None:
    is_aborted = outcome == "aborted"
    txn |= {
        "commit_ns": None if is_aborted else now,
        "end_ns": now,
        "outcome": outcome,
        "fate": outcome,
    }


def closure(edges: set[Edge]) -> set[Edge]:
    """All pairs of which the first leads to the second."""
    nodes = {node for edge in edges for node in edge}
    closed = set(edges)
    for middle, left, right in product(nodes, nodes, nodes):
        if (left, middle) in closed and (middle, right) in closed:
            closed.add((left, right))
    return closed


def circles(edges: set[Edge]) -> set[frozenset[str]]:
    """The transactions that lead to each other, for each such group of several."""
    closed = closure(edges)
    return {
        frozenset(other for other in dict(closed) if {(node, other), (other, node)} <= closed)
        | {node}
        for node, end in closed
        if node == end
    }
