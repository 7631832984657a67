"""`python -m tests.simulation.play --seed N ...`: seeds one after another, a JSON line for each.

Another program plays seeds by it: `--lines DIR` records which lines of the broker run, `--bug FILE`
plays them on brokers with a drawn bug and ends at the first finding. It runs in the environment of
the simulation, and starts itself again there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

from tests.simulation.__main__ import ROOT, prepared

NO_PYTHON = 3


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.play")
    parser.add_argument("--seed", type=int, action="append", required=True)
    parser.add_argument("--lines", type=Path)
    parser.add_argument("--bug", type=Path)
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("simloop") is None:
        return _start_in_environment(arguments)
    if options.lines is not None:
        _record_lines(options.lines)
    _play(options.seed)
    return 0


def _start_in_environment(arguments: list[str]) -> int:
    from urteil.harness.dependencies.simulation_python import HOW, simulation_python

    python = simulation_python()
    if python is None:
        print(f"no Python 3.12 or newer on this machine; {HOW}", file=sys.stderr)
        return NO_PYTHON
    program = str(prepared(*python) / "bin" / "python")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    os.execve(program, [program, "-P", "-m", "tests.simulation.play", *arguments], environment)


def _record_lines(folder: Path) -> None:
    from urteil.suites.coverage.compilation import compile_with_probes
    from urteil.suites.coverage.line_files import set_folder
    from urteil.suites.source_hook import install

    set_folder(folder)
    install(compile_with_probes)


def _play(seeds: list[int]) -> None:
    from tests.simulation.scenario import simulate

    for seed in seeds:
        run = simulate(seed)
        findings = {finding.guarantee: finding.sentence for finding in reversed(run.findings)}
        row = {"seed": seed, "findings": findings, "seconds": round(run.real_s, 2)}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
