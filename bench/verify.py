"""How long a judgement takes and how much memory, on both engines, over made-up evidence.

    python bench/verify.py [--records N] [--partitions N] [--engine spark --engine duckdb]
                           [--memory 1g] [--json FILE]

The evidence is healthy: N acknowledged sends, N reads of a consumer, N of three final passes
together, and three replicas. Each engine runs in a process of its own; its peak is the resident
memory of that process and its children (the JVM), sampled. Run it with two sizes to see that memory
does not follow rows.
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
from pathlib import Path

import psutil

from urteil.harness.verify import synthetic

SAMPLE_S = 0.1


def main() -> None:
    """Print one line an engine."""
    args = _arguments()
    if args.judge is not None:
        _judge(args.judge, args.engine[0])
        return
    told = []
    with tempfile.TemporaryDirectory(prefix="urteil-bench-", dir=args.scratch) as folder:
        run_dir = Path(folder)
        began = time.monotonic()
        per_partition = args.records // args.partitions
        shape = synthetic.Shape(records=per_partition, partitions=args.partitions, sliced=True)
        synthetic.write_large(run_dir, shape)
        size_mb = sum(file.stat().st_size for file in run_dir.rglob("*.parquet")) / 1e6
        made_s = time.monotonic() - began
        print(f"{args.records} sends: {size_mb:.0f} MB of evidence made in {made_s:.1f} s")
        for engine in args.engine:
            told.append({"records": args.records} | _measure(run_dir, engine, args.memory))
            print("{engine:8} {seconds:7.1f} s {peak_mb:7.0f} MB  {verdict}".format(**told[-1]))
    if args.json is not None:
        args.json.write_text(json.dumps(told, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--engine", action="append", choices=("spark", "duckdb"))
    parser.add_argument("--memory", default="2g", help="Spark's heap")
    parser.add_argument("--scratch", type=Path, help="where the evidence is made")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.engine = args.engine or ["spark", "duckdb"]
    return args


def _measure(run_dir: Path, engine: str, memory: str) -> dict[str, str | float]:
    command = [sys.executable, __file__, "--judge", str(run_dir), "--engine", engine]
    env = os.environ | {"URTEIL_SPARK_MEMORY": memory}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    peak = _Peak(process.pid)
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{engine} ended with {process.returncode}")
    told: dict[str, str | float] = json.loads(out.splitlines()[-1])
    return {"engine": engine, "peak_mb": peak.stop() / 1e6, **told}


class _Peak:
    """The highest resident memory of a process and its children, sampled until `stop`."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_S):
            total = 0
            try:
                for one in [self._process, *self._process.children(recursive=True)]:
                    total += one.memory_info().rss
            except psutil.Error:
                continue
            self._peak = max(self._peak, total)

    def stop(self) -> int:
        self._done.set()
        self._thread.join()
        return self._peak


def _judge(run_dir: Path, engine: str) -> None:
    from urteil.harness.verify.judgement import judge_run

    began = time.monotonic()
    result = judge_run(run_dir, engine=engine, master=None, session=None)
    seconds = time.monotonic() - began
    verdict = f"{result.verdict} {'; '.join(result.reasons)[:300]}".strip()
    print(json.dumps({"seconds": round(seconds, 1), "verdict": verdict}))


if __name__ == "__main__":
    main()
