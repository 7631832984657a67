"""Seeds of the simulation, played by a child process: one JSON line for each on its output."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from urteil.harness.reaper import start_reaper

MODULE = "urteil.suites.simulation.play"


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated seed. `findings` has the first sentence of each violated guarantee. `seconds` is
    processor time, `virtual_s` what passed in it. `bug_ran`: the line of the drawn bug ran."""

    seed: int
    findings: dict[str, str] = {}
    seconds: float
    virtual_s: float = 0.0
    bug_ran: bool = False


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What the child printed, and how it ended: `output` are the last lines of its errors."""

    runs: list[SimulatedRun]
    exit_code: int | None
    output: str
    seconds: float

    @property
    def is_late(self) -> bool:
        """The child did not end within a limit."""
        return self.exit_code in (None, -signal.SIGXCPU, -signal.SIGKILL)


class NoSimulation(Exception):
    """The simulation has no Python, or the bug is one of other source."""


def simulate(
    seeds: Sequence[int],
    *,
    limit_s: float,
    lines: Path | None = None,
    bug: Path | None = None,
    draws: Sequence[Path] = (),
    processor_s: float | None = None,
) -> Simulation:
    """Play `seeds`, with the executed lines in the folder `lines`, on brokers with a drawn `bug`.
    Files of `draws` describe further runs, and are replaced by their results (guided_draws.py).

    With a bug, the child stops at the first seed with a finding. It is killed after `limit_s`
    seconds or `processor_s` of processor time, and when this process ends. Raises NoSimulation.
    """
    start_reaper()
    argv = [sys.executable, "-m", MODULE, *(f"--seed={seed}" for seed in seeds)]
    argv += [] if lines is None else [f"--lines={lines.resolve()}"]
    argv += [] if bug is None else [f"--bug={bug.resolve()}"]
    argv += [f"--draws={file.resolve()}" for file in draws]
    argv += [] if processor_s is None else [f"--processor-s={processor_s:.0f}"]
    began = time.monotonic()
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=limit_s)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        code = None
    except BaseException:
        process.kill()
        process.wait()
        raise
    if code == _CANNOT_PLAY:
        raise NoSimulation(errors.strip())
    return Simulation(
        runs=[
            msgspec.json.decode(line, type=SimulatedRun)
            for line in output.splitlines()
            if line.startswith("{") and line.endswith("}")
        ],
        exit_code=code,
        output="\n".join(errors.splitlines()[-_LINES:]),
        seconds=round(time.monotonic() - began, 1),
    )


_LINES = 12
_CANNOT_PLAY = 3
