"""`python -m tests.simulation [pytest's options]`: the simulation on the newest Python found.

It needs Python 3.12 (simloop does), and has packages and an environment of its own for that, under
`.tox/`. Where there is no such Python it says so, and that nothing was simulated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

from urteil.harness.dependencies.simulation_python import HOW, simulation_python

ROOT = Path(__file__).resolve().parents[2]
NICE = 10
"""Its time is virtual: it takes what the tests beside it leave of the real one."""
TIMEOUT_S = 1_200
"""A test waits for runs that stand in one queue with all others', and get little time."""
LOCK = Path(__file__).with_name("requirements.lock")


def main(arguments: list[str]) -> int:
    """pytest's exit code; 0 where there is no Python to run it."""
    interpreter = simulation_python()
    if interpreter is None:
        print(f"SIMULATION NOT RUN: no Python 3.12 or newer on this machine; {HOW}", flush=True)
        return 0
    python, version = interpreter
    environment = prepared(python, version)
    print(f"SIMULATION on Python {version}", flush=True)
    os.nice(NICE)
    command = [
        str(environment / "bin" / "python"), "-P", "-m", "pytest", "tests/simulation",
        "--confcutdir", "tests/simulation", "--rootdir", str(ROOT), "--timeout", str(TIMEOUT_S),
        *arguments,
    ]  # fmt: skip
    return subprocess.call(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})


def prepared(python: str, version: str) -> Path:
    """The environment of that Python with the locked packages; made when they changed."""
    mark = zlib.crc32(LOCK.read_bytes() + python.encode())
    environment = ROOT / ".tox" / f"simulation-{version}-{mark:08x}"
    ready = environment / ".ready"
    if not ready.exists():
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        subprocess.run(
            [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet",
             "--disable-pip-version-check", "--require-hashes", "-r", str(LOCK)],
            check=True,
        )  # fmt: skip
        ready.touch()
    return environment


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
