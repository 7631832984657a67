"""Dependencies among transactions: the graph whose cycles are anomalies of isolation.

There are three kinds of edges, reduced to the next neighbour:
- `ww`: the next record of another transaction in a partition.
- `wr`: a transaction read a record that another one wrote. It is `early` if the reader reads
  uncommitted records: the other transaction may have committed later.
- `rw`: the first record of another transaction after the last one that a transaction read.

A record whose send has no offset, or an unknown outcome, is placed where readers received it.
Aborted transactions are left out. Source: Adya, Liskov, O'Neil, Generalized Isolation Level
Definitions (2000).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.verify import evidence
from urteil.harness.verify.derived.digraph import Edge, Node
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.part_cache import once_a_version_of_any_size

Txn = tuple[str, int, int]
"""Client, session and number. A node of the graph is the transaction's index in the sorted list."""
Place = tuple[int, int]
"""Partition number and offset."""
UNCOMMITTED = "read_uncommitted"

KINDS = ("ww", "wr", "early", "rw")


@dataclass(slots=True)
class Graph:
    """Edges by kind: from, to, and a log position that shows the edge."""

    ww: dict[Edge, Place] = field(default_factory=dict)
    early: dict[Edge, Place] = field(default_factory=dict)
    wr: dict[Edge, Place] = field(default_factory=dict)
    rw: dict[Edge, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class History:
    """What transactions appended and read, and the dependencies that follow."""

    graph: Graph
    writes: Mapping[int, Sequence[tuple[int, Node]]]
    """By partition: offset and writer of each record, in the order of the log."""
    read: Mapping[tuple[Node, int], int]
    """The last offset that a transaction read in a partition: its position there."""


def transaction_of(row: Row) -> Txn:
    return row["client"], row["session"], row["txn"]


def read_history(
    run_dir: Path, txns: Sequence[Row], numbers: Mapping[tuple[str, int], int]
) -> History:
    """The history of these transactions; `numbers` maps each partition to its number."""
    nodes = {transaction_of(txn): node for node, txn in enumerate(txns)}
    writes: dict[int, list[tuple[int, Node]]] = defaultdict(list)
    writer_of: dict[str, Node] = {}
    unplaced: dict[str, Node] = {}
    for txn, partition, offset, value_id, outcome in transaction_rows(run_dir, "sends", "outcome"):
        node = nodes.get(txn)
        if node is not None and outcome != "fail":
            writer_of[value_id] = node
            if outcome != "ok" or offset is None:
                unplaced[value_id] = node
            elif partition in numbers:
                writes[numbers[partition]].append((offset, node))
    uncommitted_readers = _uncommitted_sessions(run_dir)
    for value_id, (partition, offset) in _places(
        run_dir, unplaced, txns, uncommitted_readers
    ).items():
        if partition in numbers:
            writes[numbers[partition]].append((offset, unplaced[value_id]))
    graph, read = Graph(), dict[tuple[Node, int], int]()
    for p, partition_writes in sorted(writes.items()):
        partition_writes.sort()
        for (_, before), (offset, after) in pairwise(partition_writes):
            if before != after:
                graph.ww.setdefault((before, after), (p, offset))
    for txn, partition, offset, value_id in transaction_rows(run_dir, "reads"):
        reader = nodes.get(txn)
        if reader is None or partition not in numbers:
            continue
        p = numbers[partition]
        if offset >= read.get((reader, p), -1):
            read[reader, p] = offset
        writer = writer_of.get(value_id)
        if writer is not None and writer != reader:
            seen = (
                graph.early if uncommitted_readers and txn[:2] in uncommitted_readers else graph.wr
            )
            seen.setdefault((writer, reader), (p, offset))
    _add_reads_before_writes(graph, writes, read)
    return History(graph, writes, read)


def _places(
    run_dir: Path,
    unplaced: Mapping[str, Node],
    txns: Sequence[Row],
    uncommitted_readers: Set[tuple[str, int]],
) -> dict[str, tuple[tuple[str, int], int]]:
    """The partition and first offset at which readers received each of these values. For
    transactions of unknown outcome, reads of uncommitted records do not count: the transaction may
    have been aborted later."""
    places: dict[str, tuple[tuple[str, int], int]] = {}
    if not unplaced:
        return places
    value_ids = pa.array(unplaced, pa.string())
    columns = ["client", "session", "topic_id", "partition", "offset", "value_id"]
    for part in evidence.files(run_dir, "reads"):
        for batch in pq.ParquetFile(part).iter_batches(columns=columns):
            rows = batch.filter(pc.is_in(batch["value_id"], value_ids))
            for client, session, topic, number, offset, value_id in zip(
                *(evidence.column_values(rows[name]) for name in columns), strict=True
            ):
                if offset is None:
                    continue
                fate = txns[unplaced[value_id]]["fate"]
                if fate == "committed" or (client, session) not in uncommitted_readers:
                    place = (topic, number), offset
                    places[value_id] = min(place, places.get(value_id, place))
    return places


def _uncommitted_sessions(run_dir: Path) -> set[tuple[str, int]]:
    """Sessions whose isolation level is read_uncommitted."""
    rows = evidence.rows(run_dir, "clients")
    return {(row["client"], row["session"]) for row in rows if row["isolation"] == UNCOMMITTED}


def _add_reads_before_writes(
    graph: Graph, writes: dict[int, list[tuple[int, Node]]], read: Mapping[tuple[Node, int], int]
) -> None:
    by_partition: dict[int, list[tuple[int, Node]]] = defaultdict(list)
    for (reader, p), last in read.items():
        by_partition[p].append((last, reader))
    for p, reads in sorted(by_partition.items()):
        left = deque(writes.get(p, ()))
        for last, reader in sorted(reads):
            while left and left[0][0] <= last:
                left.popleft()
            following = next(
                ((o, next_reader) for o, next_reader in left if next_reader != reader), None
            )
            if following is not None:
                graph.rw.setdefault((reader, following[1]), (p, following[0]))


def transaction_rows(run_dir: Path, table: str, *more: str) -> Iterator[tuple[Any, ...]]:
    """Transaction, partition, offset, value and `more` of the rows within transactions.

    Reads the table in batches, so that memory does not grow with the length of a file.
    """
    columns = ["client", "session", "txn", "topic_id", "partition", "offset", "value_id", *more]
    for part in evidence.files(run_dir, table):
        if not (groups := _transactional_row_groups(part)):
            continue
        for batch in pq.ParquetFile(part).iter_batches(row_groups=groups, columns=columns):
            rows = batch.filter(batch["txn"].is_valid())
            cells = [evidence.column_values(rows[name]) for name in columns]
            txns, partitions = (zip(*of, strict=True) for of in (cells[:3], cells[3:5]))
            yield from zip(txns, partitions, *cells[5:], strict=True)


@once_a_version_of_any_size
def _transactional_row_groups(part: Path) -> list[int]:
    """The row groups that may have rows within transactions, by their statistics."""
    metadata = evidence.footer(part)
    if "txn" not in metadata.schema.names:
        return []
    column = metadata.schema.names.index("txn")
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    statistics = [group.column(column).statistics for group in groups]
    return [
        n
        for n, (group, group_statistics) in enumerate(zip(groups, statistics, strict=True))
        if group_statistics is None
        or not group_statistics.has_null_count
        or group_statistics.null_count < group.num_rows
    ]
