"""How long histories of others take to be read and judged, by their shape.

    python bench/imports.py [--ops N] [--shape NAME ...] [--engine duckdb|spark] [--json]

Each shape is a history of about N operations (20,000), in Jepsen's form. A process of its own
imports it. A line has the processor seconds of reading and of judging, each with its ratio to the
clean history's for as many lines, and the peak of memory. Ratios are of one run: they hold on a
busy machine too.
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

    def add(self, process: int, f: str, asked: str, told: str, kind: str = "ok",
            more: str = "") -> None:  # fmt: skip
        """An operation's invocation and its completion."""
        for type_, value, rest in (("invoke", asked, ""), (kind, told, more)):
            at = len(self.lines)
            self.lines.append(
                f"{{:index {at}, :time {at * 1000}, :type :{type_}, :process {process}, "
                f":f :{f}, :value {value}{rest}}}"
            )

    def send(self, process: int, key: int, offset: int, value: int | str, kind: str = "ok",
             more: str = "") -> None:  # fmt: skip
        told = f"[{offset} {value}]" if kind == "ok" else str(value)
        asked = f"[[:send {key} {value}]]"
        self.add(process, "send", asked, f"[[:send {key} {told}]]", kind, more)

    def poll(self, process: int, key: int, records: list[tuple[int, int | str]],
             kind: str = "ok") -> None:  # fmt: skip
        self.add(process, "poll", "[[:poll]]", f"[[:poll {polled(key, records)}]]", kind)

    def read_all(self, process: int, logs: dict[int, list[tuple[int, int | str]]]) -> None:
        """A new process polls every log from its beginning to its end."""
        keys = f"[{' '.join(map(str, logs))}]"
        seek = ", :seek-to-beginning? true"
        self.add(process, "assign", keys + seek, keys, more=seek)
        for key, records in logs.items():
            for at in range(0, len(records), POLLED):
                self.poll(process, key, records[at : at + POLLED])


def polled(key: int, records: list[tuple[int, int | str]]) -> str:
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
    """Every second send has another end, by a process that is not used again."""
    out, log = Writer(), list[tuple[int, int | str]]()
    for n in range(ops):
        if n % 2:
            out.send(10 + n, 0, 0, n, kind, more)
        else:
            out.send(n % 5, 0, len(log), n)
            log.append((len(log), n))
    out.read_all(10**6, {0: log})
    return out


def contradicted(ops: int) -> Writer:
    """Every offset was acknowledged for two values."""
    out = Writer()
    for n in range(ops):
        out.send(n % 5, n % 10, n // 20, n)
    out.read_all(
        10**6, {key: [(at, at * 20 + key) for at in range(ops // 20)] for key in range(10)}
    )
    return out


def vanished(ops: int) -> Writer:
    """Every tenth record is acknowledged and not there."""
    out, logs = Writer(), dict[int, list[tuple[int, int | str]]]()
    for n in range(ops):
        key, offset = n % 10, n // 10
        out.send(n % 5, key, offset, n)
        if offset % 10 != 5:
            logs.setdefault(key, []).append((offset, n))
    out.read_all(10**6, logs)
    return out


def subscribed(ops: int) -> Writer:
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
            told = f"[[:poll {polled(member, records[at : at + POLLED])}]]"
            more = f", :rebalance-log [{{:keys [{member}]}}]"
            out.add(100 + member, "poll", "[[:poll]]", told, more=more)
    out.read_all(10**6, logs)
    return out


def transactions(ops: int, missed: Callable[[int], int]) -> Writer:
    """Transactions of two sends and a poll, of which each reads what `missed` before wrote; markers
    take an offset each."""
    out = Writer()
    logs: dict[int, list[tuple[int, int | str]]] = {key: [] for key in range(5)}
    for n in range(ops // 2):
        places = [(n % 5, 3 * (n // 5) * 2), ((n + 1) % 5, 3 * (n // 5) * 2 + 3)]
        asked, told = [], []
        for m, (key, offset) in enumerate(places):
            asked.append(f"[:send {key} {2 * n + m}]")
            told.append(f"[:send {key} [{offset} {2 * n + m}]]")
            logs[key].append((offset, 2 * n + m))
        seen = n - missed(n)
        record = [(3 * (seen // 5) * 2, 2 * seen)] if 0 <= seen < ops // 2 and seen != n else []
        found = polled(seen % 5, [*record]) if record else "{}"
        out.add(n % 5, "txn", f"[{' '.join(asked)} [:poll]]", f"[{' '.join(told)} [:poll {found}]]")
    out.read_all(10**6, {key: sorted(log) for key, log in logs.items()})
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
    "every offset contradicted": contradicted,
    "every tenth record lost": vanished,
    "a rebalance for each poll": subscribed,
    "transactions": lambda ops: transactions(ops, lambda _: 1),
    "transactions in many cycles": lambda ops: transactions(ops, lambda n: -1 if n % 2 else 1),
    "transactions that read far back": lambda ops: transactions(ops, lambda n: n % 997),
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
        print(json.dumps(_one(args.one, args.engine)))
        return
    rows = []
    for row in _rows(args):
        rows.append(row)
        if not args.json:
            print(_line(row), flush=True)
    if args.json:
        print(json.dumps(rows, indent=2))


def _rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What each shape took, and how that compares with the clean one, which comes first."""
    clean: dict[str, Any] = {}
    for shape in dict.fromkeys(["clean", *(args.shape or SHAPES)]):
        with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
            path = Path(folder) / "history.edn"
            lines = SHAPES[shape](args.ops).lines
            path.write_text("\n".join(lines))
            command = [sys.executable, __file__, "--one", str(path), "--engine", args.engine]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = {"shape": shape, "lines": len(lines)} | json.loads(told.splitlines()[-1])
        clean = clean or row
        for what in ("read_s", "judge_s"):
            each = row[what] / row["lines"], clean[what] / clean["lines"]
            row[what.replace("_s", "_ratio")] = round(each[0] / each[1], 2)
        yield row


def _one(path: Path, engine: str) -> dict[str, Any]:
    from urteil.harness.jepsen.load import load
    from urteil.harness.verify.judgement import judge_run

    run_dir = path.parent / "run"
    before = time.process_time()
    load(path, run_dir, isolation="read_committed")
    between = time.process_time()
    result = judge_run(run_dir, engine=engine, master=None, session=None)
    return {
        "verdict": result.verdict,
        "read_s": round(between - before, 2),
        "judge_s": round(time.process_time() - between, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "findings": {g.name: g.violations for g in result.guarantees if g.violations},
    }


def _line(row: dict[str, Any]) -> str:
    return (
        "{shape:34} {lines:9,} lines  read {read_s:6.2f} s ({read_ratio:.2f})  judged "
        "{judge_s:6.2f} s ({judge_ratio:.2f})  {peak_mb:5,} MB  {verdict}"
    ).format(**row)


if __name__ == "__main__":
    main()
