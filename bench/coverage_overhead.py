"""Cost of `--coverage`: processor time of the broker's work with and without probes in its lines.

    python bench/coverage_overhead.py [--pairs N] [--seeds N] [--json]

Pairs of child processes play the same seeds of the simulation: brokers and clients in one process,
which waits for nothing, so its processor time is the work. The seeds are the same runs with and
without probes. A pair's ratio is processor time with probes by that without. The goal is a median
of at most 1.25; the exit code is 1 above it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from urteil.harness.hunt.simulation import simulate

GOAL = 1.25
LIMIT_S = 300.0


def seconds(seeds: range, lines: Path | None) -> float:
    """Processor time of the seeds."""
    played = simulate(seeds, limit_s=LIMIT_S * len(seeds), lines=lines)
    if len(played.runs) != len(seeds):
        raise SystemExit(f"the simulation ended early: {played.output}")
    return sum(run.seconds for run in played.runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seeds, ratios = range(1, options.seeds + 1), []
    with tempfile.TemporaryDirectory() as folder:
        seconds(range(1, 2), Path(folder))  # compiles
        for _ in range(options.pairs):
            plain = seconds(seeds, None)
            ratios.append(seconds(seeds, Path(folder)) / plain)
    median = statistics.median(ratios)
    result = {"goal": GOAL, "median": round(median, 3), "ratios": [round(r, 3) for r in ratios]}
    if options.json:
        print(json.dumps(result))
    else:
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(
            f"processor time with probes: {median:.2f} times that without ({spread}; goal {GOAL})"
        )
    return 0 if median <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
