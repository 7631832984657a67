"""Speed of the simulation: virtual seconds that pass in a second of one processor.

    python bench/simulation.py [--seeds N] [--json]

Seeds of the replication mix are played one by one, each between two rounds of a fixed piece of
plain Python. So the speed is also given as virtual seconds in the processor time of one round: that
ratio does not depend on the machine and what else it does. Compare two versions by it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import pairwise

from urteil.harness.hunt.simulation import SimulatedRun, simulate

LIMIT_S = 900.0


def round_s() -> float:
    """Processor time of dictionaries, tuples and calls, as brokers use them."""
    began = time.process_time()
    table: dict[int, tuple[int, str]] = {}
    for number in range(200_000):
        table[number % 1000] = (number, str(number))
    assert len(sorted(table.values(), key=lambda row: row[1])) == 1000
    return time.process_time() - began


def play(seed: int) -> SimulatedRun:
    played = simulate([seed], limit_s=LIMIT_S)
    if not played.runs:
        raise SystemExit(f"the simulation ended early: {played.output}")
    return played.runs[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds, speeds = [round_s()], []
    for seed in range(1, options.seeds + 1):
        run = play(seed)
        speeds.append(run.virtual_s / run.seconds)
        rounds.append(round_s())
    by_round = [
        speed * (before + after) / 2
        for speed, (before, after) in zip(speeds, pairwise(rounds), strict=True)
    ]
    result = {
        "virtual_s_per_s": round(statistics.median(speeds), 1),
        "virtual_s_per_round": round(statistics.median(by_round), 2),
        "of": [round(speed, 1) for speed in speeds],
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"{result['virtual_s_per_s']} virtual seconds a second of one processor "
            f"({min(speeds):.1f} to {max(speeds):.1f}), "
            f"{result['virtual_s_per_round']} in the time of one round"
        )


if __name__ == "__main__":
    main()
