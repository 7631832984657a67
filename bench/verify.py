"""The time and memory that the entire catalogue needs, and their growth, on Spark and DuckDB.

    python bench/verify.py [--sends N ...] [--engine spark|duckdb ...] [--json] [--memory 1g]
                           [--seed N] [--scratch DIR]

Histories of `bench/generated_histories.py`, with 10^5, 10^6 and 10^7 sends unless `--sends` is set,
are judged as by `urteil verify`, with the self-test. Each judgement is a process of its own: its
time is that of the entire process, including the start of Python and JVM; its memory is the peak of
the process tree (proportional set size, so that shared memory counts once).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import generated_histories
import psutil

ENGINES = ("duckdb", "spark")
SENDS = (100_000, 1_000_000, 10_000_000)
SAMPLE_S = 0.5


def main() -> None:
    """Print one line for each engine and size, then the growth."""
    args = _arguments()
    if args.judge is not None:
        _judge(args.judge, args.engine[0])
        return
    rows = []
    for sends in args.sends:
        with tempfile.TemporaryDirectory(prefix="urteil-bench-", dir=args.scratch) as folder:
            rows += _history(Path(folder), sends, args)
    growth = _growth(rows)
    if args.json:
        print(json.dumps({"runs": rows, "growth": growth}, indent=2))
    else:
        for row in growth:
            print(
                "{engine}: {before:,} to {after:,} sends, "
                "{seconds:.1f} times the seconds, {memory:.2f} times the memory".format(**row)
            )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sends", type=int, action="append", help="may be given again")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be given again")
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", help="Spark's heap, in place of its default")
    parser.add_argument("--scratch", type=Path, help="where the evidence is made")
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.engine = args.engine or list(ENGINES)
    args.sends = args.sends or list(SENDS)
    if any(sends < 10 * args.partitions for sends in args.sends):
        parser.error(f"--sends: at least 10 for each of the {args.partitions} partitions")
    return args


def _history(run_dir: Path, sends: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    began = time.monotonic()
    generated_histories.History(sends, args.partitions, args.seed).write(run_dir)
    size_mb = sum(file.stat().st_size for file in run_dir.rglob("*.parquet")) / 1e6
    if not args.json:
        made_s = time.monotonic() - began
        print(f"{sends:,} sends: {size_mb:.0f} MB of evidence made in {made_s:.1f} s", flush=True)
    rows = []
    for engine in args.engine:
        rows.append({"sends": sends} | _measure(run_dir, engine, args.memory))
        if not args.json:
            line = "  {engine:6} {seconds:7.1f} s ({cpu_s:.1f} s of processors) {peak_mb:7.0f} MB"
            print(f"{line}  {{verdict}}".format(**rows[-1]), flush=True)
    return rows


def _measure(run_dir: Path, engine: str, memory: str | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--judge", str(run_dir), "--engine", engine]
    env = os.environ | ({"URTEIL_SPARK_MEMORY": memory} if memory else {})
    began = time.monotonic()
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        peak = _Peak(process.pid)
        out, _ = process.communicate()
        seconds = time.monotonic() - began
        most, cpu_s = peak.stop()
    if process.returncode:
        raise SystemExit(f"{engine} ended with {process.returncode}")
    rows: dict[str, Any] = json.loads(out.splitlines()[-1])
    used = {"seconds": round(seconds, 2), "cpu_s": round(cpu_s, 1), "peak_mb": round(most / 1e6)}
    return {"engine": engine} | used | rows


class _Peak:
    """The most memory of a process and its children, and their processor time, until `stop`."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._peak = 0
        self._spent: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_S):
            total = 0
            with suppress(psutil.Error, OSError):
                for process in [self._process, *self._process.children(recursive=True)]:
                    total += _memory(process)
                    times = process.cpu_times()
                    self._spent[process.pid] = times.user + times.system
            self._peak = max(self._peak, total)

    def stop(self) -> tuple[int, float]:
        """Bytes at the peak, seconds of processors."""
        self._done.set()
        self._thread.join()
        return self._peak, sum(self._spent.values())


def _memory(process: psutil.Process) -> int:
    """The process' proportional share of memory on Linux; its resident memory elsewhere."""
    rollup = Path(f"/proc/{process.pid}/smaps_rollup")
    if not rollup.exists():
        return int(process.memory_info().rss)
    lines = rollup.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _growth(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ratio of each size to the one before it, by engine."""
    measurements = []
    for engine in ENGINES:
        engine_rows = sorted(
            (row for row in rows if row["engine"] == engine), key=lambda r: r["sends"]
        )
        for before, other in pairwise(engine_rows):
            measurements.append(
                {"engine": engine, "before": before["sends"], "after": other["sends"]}
                | {"seconds": round(other["seconds"] / before["seconds"], 2)}
                | {"memory": round(other["peak_mb"] / before["peak_mb"], 2)}
            )
    return measurements


def _judge(run_dir: Path, engine: str) -> None:
    from urteil.harness.verify.judgement import judge_run

    result = judge_run(run_dir, engine=engine, master=None, session=None)
    verdict = f"{result.verdict} {'; '.join(result.reasons)[:300]}".strip()
    judged = sum(guarantee.opportunities > 0 for guarantee in result.guarantees)
    print(json.dumps({"judged": judged, "verdict": verdict}))


if __name__ == "__main__":
    main()
