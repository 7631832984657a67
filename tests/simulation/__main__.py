"""`python -m tests.simulation [pytest's options]`: the simulation's tests on the newest Python.

Where there is no such Python it says so, and that nothing was simulated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from urteil.harness.dependencies.simulation_python import HOW, simulation_python
from urteil.suites.simulation.environment import interpreter

ROOT = Path(__file__).resolve().parents[2]
NICE = 10
"""Its time is virtual: it takes what the tests beside it leave of the real one."""
TIMEOUT_S = 1_200
"""A test waits for runs that stand in one queue with all others', and get little time."""


def main(arguments: list[str]) -> int:
    """pytest's exit code; 0 where there is no Python to run it."""
    python = simulation_python()
    if python is None:
        print(f"SIMULATION NOT RUN: no Python 3.12 or newer on this machine; {HOW}", flush=True)
        return 0
    program = interpreter(*python)
    print(f"SIMULATION on Python {python[1]}", flush=True)
    os.nice(NICE)
    command = [
        program, "-P", "-m", "pytest", "tests/simulation",
        "--confcutdir", "tests/simulation", "--rootdir", str(ROOT), "--timeout", str(TIMEOUT_S),
        *arguments,
    ]  # fmt: skip
    return subprocess.call(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
