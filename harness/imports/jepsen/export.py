"""Export of a run's evidence as a history for `jepsen.tests.kafka`: one operation a line.

Keys number the partitions; a value is the client's number * 10^9 + its sequence. Each client
session is one process. A producer's concurrent sends are spread over several processes, since a
Jepsen process does one thing at a time, and a process whose operation ended `:info` is not used
again. The polls of a committed transaction are steps of its operation. Those of another one are an
operation of their own, which succeeded: Jepsen ignores what a failed operation read, and would miss
it between the polls around. A reader assigns, a group member subscribes. A pass of a final reader
begins with an assign that seeks to the beginning; after a complete one,
`:debug-topic-partitions` has the end it reached.

Records without a value of this run are left out, since Jepsen takes every value to have been sent.
So are readers of uncommitted records in a run with transactions, since Jepsen takes all reads for
committed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.imports.jepsen.edn import Keyword, to_edn

Row = dict[str, Any]
SPREAD = 10**9
Txn = tuple[str, int, int]
"""Client, session, number."""
_Step = tuple[int, list[Any], list[Any]]
"""Time, invocation and completion of a step of an operation."""
_READ_COLUMNS = (
    "client session pass poll position_in_poll read_ns topic topic_id partition offset value_id"
)
_TXN_TYPES = {"committed": "ok", "aborted": "fail", "fenced": "fail"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Op:
    """One operation. Its `owner` does one at a time unless it is spread."""

    owner: tuple[str, int]
    f: str
    begin_ns: int
    end_ns: int
    type: str
    invocation: Any
    completion: Any
    more: dict[str, Any] = field(default_factory=dict)


def export(run_dir: Path, path: Path) -> int:
    """Write the history of a run to `path`. Returns the number of operations.

    Memory grows with the history: about 1 GB for a million sends and as many reads.
    """
    names = _Names()
    ops = [*_sends(run_dir, names), *_polls(run_dir, names)]
    rows = sorted(_events(_processes(ops)), key=lambda event: (event[0], event[1]))
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as out:
        for line in names.legend():
            out.write(line + "\n")
        for index, (at_ns, _, row) in enumerate(rows):
            out.write(to_edn({Keyword("index"): index, Keyword("time"): at_ns} | row) + "\n")
    part.replace(path)
    return len(ops)


class _Names:
    """Numbers for clients and partitions, in the order of their appearance."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, int], int] = {}
        self._clients: dict[str, int] = {}

    def key(self, row: Row) -> int:
        partition = row["partition"]
        partition = row.get("partition_intended") if partition is None else partition
        place = (str(row["topic"] or row["topic_id"]), int(partition or 0))
        return self._keys.setdefault(place, len(self._keys))

    def value(self, value_id: str) -> int:
        client, _, op = value_id.rpartition("/")
        number = self._clients.setdefault(client, len(self._clients) + 1)
        return number * SPREAD + int(op)

    def legend(self) -> Iterator[str]:
        yield "; keys: " + ", ".join(f"{n} {t}-{p}" for (t, p), n in self._keys.items())
        yield f"; values: N * {SPREAD} + sequence of RUN/CLIENT N: " + ", ".join(
            f"{number} {client}" for client, number in self._clients.items()
        )


def _rows(
    run_dir: Path, table: str, columns: str, *, within_transactions: bool | None = None
) -> list[Row]:
    """The rows of a table; all of them, or only those within transactions or outside."""
    paths = sorted((run_dir / "evidence" / table).glob("*.parquet"))
    if not paths:
        return []
    dataset = ds.dataset([str(part) for part in paths], schema=SCHEMAS[table])
    outside = ds.field("txn").is_null()
    chosen = {None: None, True: ~outside, False: outside}[within_transactions]
    rows: list[Row] = dataset.to_table(columns=columns.split(), filter=chosen).to_pylist()
    return rows


def _is_complete_id(value_id: str | None) -> bool:
    return value_id is not None and value_id.rpartition("/")[2].isdigit()


def _sends(run_dir: Path, names: _Names) -> Iterator[_Op]:
    """Every send alone, or all sends of a transaction together with its polls."""
    columns = "client session op invoke_ns complete_ns outcome topic_id topic partition txn"
    sends = _rows(run_dir, "sends", f"{columns} partition_intended offset value_id")
    in_txn: dict[Txn, list[Row]] = defaultdict(list)
    for row in sorted(sends, key=lambda row: int(row["invoke_ns"])):
        if not _is_complete_id(row["value_id"]):
            continue
        if row["txn"] is not None:
            in_txn[row["client"], row["session"], row["txn"]].append(row)
            continue
        end_ns = row["invoke_ns"] if row["complete_ns"] is None else row["complete_ns"]
        key, value = names.key(row), names.value(row["value_id"])
        answered = [row["offset"], value] if row["outcome"] == "ok" else value
        yield _Op(owner=(row["client"], row["session"]), f="send", begin_ns=row["invoke_ns"],
                  end_ns=end_ns, type=row["outcome"],
                  invocation=[[Keyword("send"), key, value]],
                  completion=[[Keyword("send"), key, answered]])  # fmt: skip
    yield from _transactions(run_dir, names, in_txn)


def _transactions(run_dir: Path, names: _Names, sent: dict[Txn, list[Row]]) -> Iterator[_Op]:
    """An operation of each transaction, with its sends and polls in order. A reader assigns before
    the transaction that begins a pass."""
    polled = _polls_in_transactions(run_dir)
    known = _rows(run_dir, "txns", "client session txn begin_ns end_ns outcome")
    passes: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for row in sorted(known, key=lambda row: int(row["begin_ns"])):
        whose = row["client"], row["session"]
        mine, reads = sent.get((*whose, row["txn"]), []), polled.get((*whose, row["txn"]), {})
        sends = [(send["invoke_ns"], *_send_step(names, send)) for send in mine]
        polls = [(rows[0]["read_ns"], *_poll_step(names, rows)) for rows in reads.values()]
        times = [row["begin_ns"], *(send["complete_ns"] or send["invoke_ns"] for send in mine)]
        times += [at_ns for at_ns, *_ in polls]
        end_ns = max(times) if row["end_ns"] is None else row["end_ns"]
        begun = {names.key(read): read["pass"] for rows in reads.values() for read in rows}
        if any(passes[whose].get(key) != number for key, number in begun.items()):
            passes[whose] |= begun
            keys = sorted(passes[whose])
            yield _Op(owner=whose, f="assign", begin_ns=row["begin_ns"], end_ns=row["begin_ns"],
                      type="ok", invocation=keys, completion=keys)  # fmt: skip
        if row["outcome"] == "committed":
            yield _steps(whose, "txn", row["begin_ns"], end_ns, "ok", sends + polls)
            continue
        if polls:
            yield _steps(whose, "poll", row["begin_ns"], max(at for at, *_ in polls), "ok", polls)
        if sends:
            outcome = _TXN_TYPES.get(row["outcome"], "info")
            yield _steps(whose, "txn", row["begin_ns"], end_ns, outcome, sends)


def _steps(
    owner: tuple[str, int], f: str, begin_ns: int, end_ns: int, outcome: str, steps: list[_Step]
) -> _Op:
    ordered = sorted(steps, key=lambda step: step[0])
    return _Op(
        owner=owner, f=f, begin_ns=begin_ns, end_ns=end_ns, type=outcome,
        invocation=[invoked for _, invoked, _ in ordered],
        completion=[completed for _, _, completed in ordered],
    )  # fmt: skip


def _send_step(names: _Names, row: Row) -> tuple[list[Any], list[Any]]:
    send, key, value = Keyword("send"), names.key(row), names.value(row["value_id"])
    is_placed = row["outcome"] == "ok" and row["offset"] is not None
    return [send, key, value], [send, key, [row["offset"], value] if is_placed else value]


def _poll_step(names: _Names, rows: list[Row]) -> tuple[list[Any], list[Any]]:
    poll = Keyword("poll")
    records: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        records[names.key(row)].append([row["offset"], names.value(row["value_id"])])
    return [poll], [poll, dict(records)]


def _polls_in_transactions(run_dir: Path) -> dict[Txn, dict[int, list[Row]]]:
    """The records of readers of committed records by transaction and poll."""
    hasty = {
        (row["client"], row["session"])
        for row in _rows(run_dir, "clients", "client session isolation")
        if row["isolation"] == "read_uncommitted"
    }
    columns = f"{_READ_COLUMNS} txn"
    polled: dict[Txn, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in _rows(run_dir, "reads", columns, within_transactions=True):
        whose = row["client"], row["session"]
        if whose not in hasty and _is_complete_id(row["value_id"]) and row["offset"] is not None:
            polled[*whose, row["txn"]][row["poll"]].append(row)
    for polls in polled.values():
        for rows in polls.values():
            rows.sort(key=lambda row: row["position_in_poll"] or 0)
    return polled


def _polls(run_dir: Path, names: _Names) -> Iterator[_Op]:
    """The polls of each reader in order, with the assigns and ends around its passes."""
    kinds = {(r["client"], r["session"]): r for r in _rows(run_dir, "clients",
             "client session kind group isolation")}  # fmt: skip
    asked = _rows(run_dir, "polls", "client session poll invoke_ns partition topic "
                  "topic_id event")  # fmt: skip
    times: dict[tuple[str, int, int], Row] = {}
    events: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for row in asked:
        place = (row["client"], row["session"], row["poll"])
        times[place] = row
        if row["event"] is not None and row["partition"] is not None:
            events[place].append(row)
    passes = _rows(run_dir, "passes", "client session pass topic topic_id partition from_offset "
                   "to_offset begin_ns end_ns final complete")  # fmt: skip
    reads = _rows(run_dir, "reads", _READ_COLUMNS, within_transactions=False)
    by_owner: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in reads:
        if _is_complete_id(row["value_id"]) and row["offset"] is not None:
            by_owner[row["client"], row["session"]].append(row)
    transactional = bool(_rows(run_dir, "txns", "client"))
    for owner, mine in by_owner.items():
        if transactional and kinds.get(owner, {}).get("isolation") == "read_uncommitted":
            continue
        theirs = [row for row in passes if (row["client"], row["session"]) == owner]
        yield from _reader(names, owner, kinds.get(owner, {}), mine, theirs, times, events)


def _reader(
    names: _Names,
    owner: tuple[str, int],
    client: Row,
    reads: list[Row],
    passes: list[Row],
    times: dict[tuple[str, int, int], Row],
    events: dict[tuple[str, int, int], list[Row]],
) -> Iterator[_Op]:
    """The operations of one reader. Its passes of several partitions may overlap, so each new one
    assigns again."""
    final = any(row["final"] for row in passes)
    reads.sort(
        key=lambda row: (
            (row["pass"] or 0) if final else 0,
            row["poll"],
            row["position_in_poll"] or 0,
        )
    )
    group = client.get("kind") == "group"
    by_poll: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in reads:
        by_poll[(row["pass"] or 0) if final else 0, row["poll"]].append(row)
    keys_of: dict[int, set[int]] = defaultdict(set)
    for row in reads:
        keys_of[(row["pass"] or 0) if final else 0].add(names.key(row))
    last_pass = None
    now_ns = 0
    passed: dict[int, Any] = {}
    for (number, poll), polled in by_poll.items():
        asked = times.get((*owner, poll), {})
        end_ns = max(now_ns, max(row["read_ns"] for row in polled))
        begin_ns = max(now_ns, min(end_ns, asked.get("invoke_ns") or end_ns))
        process = (f"{owner[0]}/{number}", owner[1]) if final else owner
        moved = sorted({names.key(row) for row in events.get((*owner, poll), [])})
        turned = {names.key(row): row["pass"] for row in polled}
        anew = moved or any(passed.get(key, turn) != turn for key, turn in turned.items())
        passed |= turned
        if number != last_pass or anew:
            keys = sorted(keys_of[number])
            more: dict[str, Any] = {"seek-to-beginning?": True} if final else {}
            yield _Op(owner=process, f="subscribe" if group else "assign", begin_ns=begin_ns,
                      end_ns=begin_ns, type="ok", invocation=keys, completion=keys,
                      more=more)  # fmt: skip
            last_pass = number
        records: dict[int, list[Any]] = defaultdict(list)
        for row in polled:
            records[names.key(row)].append([row["offset"], names.value(row["value_id"])])
        more = {"rebalance-log": [{Keyword("keys"): moved}]} if moved else {}
        yield _Op(owner=process, f="poll", begin_ns=begin_ns, end_ns=end_ns, type="ok",
                  invocation=[[Keyword("poll")]], completion=[[Keyword("poll"), dict(records)]],
                  more=more)  # fmt: skip
        now_ns = end_ns
    yield from _end_operations(names, owner, passes, now_ns)


def _end_operations(
    names: _Names, owner: tuple[str, int], passes: list[Row], now_ns: int
) -> Iterator[_Op]:
    for row in passes:
        if row["final"] and row["complete"]:
            legend = {names.key(row): {Keyword("end"): row["to_offset"]}}
            process = (f"{owner[0]}/{row['pass'] or 0}", owner[1])
            at_ns = max(now_ns, row["end_ns"] or 0)
            yield _Op(owner=process, f="debug-topic-partitions", begin_ns=at_ns, end_ns=at_ns,
                      type="ok", invocation=list(legend), completion=legend)  # fmt: skip


def _processes(ops: Iterable[_Op]) -> Iterator[tuple[int, _Op]]:
    """Each operation with its process: the owner's lowest one that is free and never
    ended `:info`."""
    numbers = iter(range(1 << 31))
    free: dict[tuple[str, int], list[int]] = defaultdict(list)
    busy: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for op in sorted(ops, key=lambda op: op.begin_ns):
        mine, running = free[op.owner], busy[op.owner]
        while running and running[0][0] <= op.begin_ns:
            heapq.heappush(mine, heapq.heappop(running)[1])
        process = heapq.heappop(mine) if mine else next(numbers)
        if op.type != "info":
            heapq.heappush(running, (op.end_ns, process))
        yield process, op


def _events(ops: Iterable[tuple[int, _Op]]) -> Iterator[tuple[int, int, Row]]:
    """Invocations and completions. At one moment completions of earlier operations come first."""
    for number, (process, op) in enumerate(ops):
        common: Row = {Keyword("process"): process, Keyword("f"): Keyword(op.f)}
        more: Row = {Keyword(name): value for name, value in op.more.items()}
        seek = {name: value for name, value in more.items() if name != "rebalance-log"}
        asked: Row = {Keyword("type"): Keyword("invoke"), **common, Keyword("value"): op.invocation}
        done: Row = {Keyword("type"): Keyword(op.type), **common, Keyword("value"): op.completion}
        yield op.begin_ns, 2 * number, asked | seek
        yield op.end_ns, 2 * number + 1, done | more
