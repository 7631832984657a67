"""Time to read and judge imported histories, by their shape.

    python bench/import_times.py [--ops N] [--shape NAME ...] [--engine duckdb|spark] [--json]

Each shape is a history of about N operations (20,000), in Jepsen's form. A process of its own
imports it. A line has the processor seconds of reading and of judging, each with its ratio to the
clean history's for as many records sent and read, and the peak of memory. Ratios are of one run:
they hold on a busy machine too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POLLED = 10
"""Records that a poll returns."""


@dataclass(slots=True)
class Writer:
    """Lines of a history, one operation each."""

    lines: list[str] = field(default_factory=list)

    def add(self, process: int, f: str, request: str, answer: str, kind: str = "ok",
            more: str = "") -> None:  # fmt: skip
        """An operation's invocation and its completion."""
        for type_, value, rest in (("invoke", request, ""), (kind, answer, more)):
            self.lines.append(
                f":type :{type_}, :process {process}, :f :{f}, :value {value}{rest}}}"
            )

    def text(self) -> str:
        """The history: each operation with its index and time."""
        return "".join(
            f"{{:index {n}, :time {n * 1000}, {line}\n" for n, line in enumerate(self.lines)
        )

    def send(self, process: int, key: int, offset: int, value: int | str, kind: str = "ok",
             more: str = "") -> None:  # fmt: skip
        answer = f"[{offset} {value}]" if kind == "ok" else str(value)
        request = f"[[:send {key} {value}]]"
        self.add(process, "send", request, f"[[:send {key} {answer}]]", kind, more)

    def poll(self, process: int, key: int, records: list[tuple[int, int | str]],
             kind: str = "ok") -> None:  # fmt: skip
        self.add(process, "poll", "[[:poll]]", f"[[:poll {poll_line(key, records)}]]", kind)

    def read_all(self, process: int, logs: dict[int, list[tuple[int, int | str]]]) -> None:
        """A new process polls every log from its beginning to its end."""
        keys = f"[{' '.join(map(str, logs))}]"
        seek = ", :seek-to-beginning? true"
        self.add(process, "assign", keys + seek, keys, more=seek)
        for key, records in logs.items():
            for at in range(0, len(records), POLLED):
                self.poll(process, key, records[at : at + POLLED])


def poll_line(key: int, records: list[tuple[int, int | str]]) -> str:
    return f"{{{key} [{' '.join(f'[{offset} {value}]' for offset, value in records)}]}}"


def sends(
    ops: int, *, keys: int = 10, process: Callable[[int], int] = lambda n: n % 5,
    value: Callable[[int], int | str] = lambda n: n, reader: Callable[[int], int] = lambda _: 10**6,
) -> Writer:  # fmt: skip
    """Sends that succeed, and everything read from the beginning."""
    out, logs = Writer(), dict[int, list[tuple[int, int | str]]]()
    for n in range(ops):
        log = logs.setdefault(n % keys, [])
        out.send(process(n), n % keys, len(log), value(n))
        log.append((len(log), value(n)))
    for n, (key, log) in enumerate(logs.items()):
        out.read_all(reader(n), {key: log})
    return out


def endings(ops: int, kind: str, more: str) -> Writer:
    """Every second send ends with another outcome, in a process that sends nothing more."""
    out, log = Writer(), list[tuple[int, int | str]]()
    for n in range(ops):
        if n % 2:
            out.send(10 + n, 0, 0, n, kind, more)
        else:
            out.send(n % 5, 0, len(log), n)
            log.append((len(log), n))
    out.read_all(10**6, {0: log})
    return out


def contradictory_history(ops: int) -> Writer:
    """Every offset was acknowledged for two values."""
    out = Writer()
    for n in range(ops):
        out.send(n % 5, n % 10, n // 20, n)
    out.read_all(
        10**6, {key: [(at, at * 20 + key) for at in range(ops // 20)] for key in range(10)}
    )
    return out


def vanishing_history(ops: int) -> Writer:
    """Every tenth record is acknowledged and missing."""
    out, logs = Writer(), dict[int, list[tuple[int, int | str]]]()
    for n in range(ops):
        key, offset = n % 10, n // 10
        out.send(n % 5, key, offset, n)
        if offset % 10 != 5:
            logs.setdefault(key, []).append((offset, n))
    out.read_all(10**6, logs)
    return out


def subscribed_history(ops: int) -> Writer:
    """Polls of members of a group, each with a rebalance."""
    out, logs = Writer(), dict[int, list[tuple[int, int | str]]]()
    for n in range(ops):
        log = logs.setdefault(n % 10, [])
        out.send(n % 5, n % 10, len(log), n)
        log.append((len(log), n))
    for member in range(10):
        out.add(100 + member, "subscribe", f"[{member}]", f"[{member}]")
        records = logs[member]
        for at in range(0, len(records), POLLED):
            answer = f"[[:poll {poll_line(member, records[at : at + POLLED])}]]"
            more = f", :rebalance-log [{{:keys [{member}]}}]"
            out.add(100 + member, "poll", "[[:poll]]", answer, more=more)
    out.read_all(10**6, logs)
    return out


def transactions(ops: int, *, crossed: bool = False, lag: int = 0, faults: int = 0) -> Writer:
    """Pairs of concurrent transactions, each with a send to two keys and a poll of one of them;
    each marker uses an offset. If they are `crossed`, the records of a pair have opposite orders,
    and each transaction polls the other's; `lag` is the number of records by which polls are
    behind, `faults` the number of records that they skip."""
    out = Writer()
    logs: dict[int, list[tuple[int, int | str]]] = {0: [], 1: []}
    position = [0, 0]
    skipped = {(n + 1) * ops // (2 * faults + 2) for n in range(faults)}
    for first in range(0, ops // 2, 2):
        pair = (first, first + 1)
        begin = len(out.lines)
        upto = [len(logs[key]) + (1 if crossed else 0) - lag for key in (0, 1)]
        for key in (0, 1):
            for n in reversed(pair) if crossed and key == 0 else pair:
                logs[key].append((2 * len(logs[key]), 2 * n + key))
        for n in pair:
            offsets = [next(o for o, v in logs[key][-2:] if v == 2 * n + key) for key in (0, 1)]
            reads = n % 2
            at, position[reads] = position[reads], max(position[reads], upto[reads])
            records = logs[reads][at : position[reads]]
            records = [record for record in records if record[0] // 2 not in skipped]
            request = " ".join(f"[:send {key} {2 * n + key}]" for key in (0, 1))
            answer = " ".join(f"[:send {key} [{offsets[key]} {2 * n + key}]]" for key in (0, 1))
            out.add(
                reads,
                "txn",
                f"[{request} [:poll]]",
                f"[{answer} [:poll {poll_line(reads, records)}]]",
            )
        if crossed:
            out.lines[begin + 1], out.lines[begin + 2] = out.lines[begin + 2], out.lines[begin + 1]
    out.read_all(10**6, logs)
    return out


TIMEOUT = ', :error [:timeout "no answer within 1000 ms"]'
SHAPES: dict[str, Callable[[int], Writer]] = {
    "clean": sends,
    "one key": lambda ops: sends(ops, keys=1),
    "a key for ten sends": lambda ops: sends(ops, keys=ops // 10),
    "a process for each send": lambda ops: sends(ops, process=lambda n: n),
    "a reader for each key": lambda ops: sends(ops, keys=ops // 20, reader=lambda n: 10**6 + n),
    "texts as values": lambda ops: sends(ops, value=lambda n: f'"v, {n}"'),
    "keywords as values": lambda ops: sends(ops, value=lambda n: f":v{n}"),
    "every second send failed": lambda ops: endings(ops, "fail", TIMEOUT),
    "every second send of unknown end": lambda ops: endings(ops, "info", TIMEOUT),
    "every offset contradicted": contradictory_history,
    "every tenth record lost": vanishing_history,
    "a rebalance for each poll": subscribed_history,
    "transactions": transactions,
    "transactions with two faults": lambda ops: transactions(ops, faults=2),
    "transactions in many cycles": lambda ops: transactions(ops, crossed=True),
    "transactions that read far back": lambda ops: transactions(ops, lag=ops // 10),
}


def main() -> None:
    """Print a line for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ops", type=int, default=20_000)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="may be given again")
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(_import_and_judge(args.one, args.engine)))
        return
    rows = []
    for row in _rows(args):
        rows.append(row)
        if not args.json:
            print(_line(row), flush=True)
    if args.json:
        print(json.dumps(rows, indent=2))


def _rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The time of each shape, and its ratio to the clean history, which is the first."""
    clean: dict[str, Any] = {}
    for shape in dict.fromkeys(["clean", *(args.shape or SHAPES)]):
        with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
            path = Path(folder) / "history.edn"
            history = SHAPES[shape](args.ops)
            path.write_text(history.text())
            command = [sys.executable, __file__, "--one", str(path), "--engine", args.engine]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = {"shape": shape, "lines": len(history.lines)} | json.loads(answer.splitlines()[-1])
        clean = clean or row
        for what in ("read_s", "judge_s"):
            each = row[what] / row["records"], clean[what] / clean["records"]
            row[what.replace("_s", "_ratio")] = round(each[0] / each[1], 2)
        yield row


def _import_and_judge(path: Path, engine: str) -> dict[str, Any]:
    from urteil.harness.imports.jepsen.importer import load
    from urteil.harness.verify.judgement import judge_run

    run_dir = path.parent / "run"
    before = time.process_time()
    load(path, run_dir, isolation="read_committed")
    between = time.process_time()
    result = judge_run(run_dir, engine=engine, master=None, session=None)
    return {
        "verdict": result.verdict,
        "records": result.counts["sends"] + result.counts["reads"],
        "read_s": round(between - before, 2),
        "judge_s": round(time.process_time() - between, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "findings": {g.name: g.violations for g in result.guarantees if g.violations},
    }


def _line(row: dict[str, Any]) -> str:
    return (
        "{shape:34} {records:9,} records  read {read_s:6.2f} s ({read_ratio:.2f})  judged "
        "{judge_s:6.2f} s ({judge_ratio:.2f})  {peak_mb:5,} MB  {verdict}"
    ).format(**row)


if __name__ == "__main__":
    main()
