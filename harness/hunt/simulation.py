"""Seeds of the simulation, played by a child process: one JSON line for each on its output."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import msgspec

from urteil.chaos.observations import LabFailure
from urteil.harness.reaper import start_reaper
from urteil.harness.simulation_process import Child, run_child, seed_arguments


class CheckError(msgspec.Struct, frozen=True, kw_only=True):
    """A check that ended with an exception when it judged a run of a mix: an error of the lab."""

    mix: str
    check: str
    error: str

    def __str__(self) -> str:
        return f"the lab failed in {self.check}, mix {self.mix}: {self.error}"


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated seed. `findings` has the first sentence of each violated guarantee. `errors` are
    the lab's own and no finding. `seconds` is processor time, `virtual_s` what passed in it.
    `bug_ran`: the line of the drawn bug ran."""

    seed: int
    findings: dict[str, str] = {}
    errors: list[CheckError] = []
    seconds: float
    virtual_s: float = 0.0
    bug_ran: bool = False


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the child, and its end: `output` are the last lines of its errors."""

    runs: list[SimulatedRun]
    exit_code: int | None
    output: str
    seconds: float

    @property
    def is_late(self) -> bool:
        """The child did not end within a limit."""
        return self.exit_code in (None, -signal.SIGXCPU, -signal.SIGKILL)


class ShrunkSeed(msgspec.Struct, frozen=True, kw_only=True):
    """The remainder of a seed's run that still violates the guarantee: its faults, the clients
    without work, partitions, seconds of faults; `tries` are runs, `seconds` their processor
    time."""

    guarantee: str
    tries: int
    faults_before: int
    faults: list[str]
    without: list[str]
    partitions: int
    faults_s: float
    seconds: float


class NoSimulation(Exception):
    """The simulation cannot be played: without Python, with an unknown name, with a bug of other
    source, or without anything to shrink or to repeat."""


def simulate(
    seeds: Sequence[int],
    *,
    limit_s: float,
    mixes: Sequence[str] = (),
    mutant: str | None = None,
    lines: Path | None = None,
    bug: Path | None = None,
    draws: Sequence[Path] = (),
    processor_s: float | None = None,
) -> Simulation:
    """Play `seeds` in all mixes of clients, or in `mixes`, with the executed lines in the folder
    `lines`, on brokers with a `mutant` or a drawn `bug`. Files of `draws` describe further runs,
    and are replaced by their results (guided_draws.py).

    With a bug, the child stops at the first seed with a finding. It is killed after `limit_s`
    seconds or `processor_s` of processor time, and when this process ends. Raises NoSimulation.
    """
    start_reaper()
    arguments = seed_arguments(seeds, mixes, mutant)
    arguments += [] if lines is None else [f"--lines={lines.resolve()}"]
    arguments += [] if bug is None else [f"--bug={bug.resolve()}"]
    arguments += [f"--draws={file.resolve()}" for file in draws]
    arguments += [] if processor_s is None else [f"--processor-s={processor_s:.0f}"]
    return simulation_of(run_child(arguments, limit_s=limit_s))


def shrink_seed(
    seed: int,
    file: Path,
    *,
    limit_s: float,
    mix: str,
    guarantee: str | None = None,
    mutant: str | None = None,
) -> ShrunkSeed:
    """Shrink the finding of a seed, or that of a guarantee, and write the smallest run to `file`.
    Raises NoSimulation; LabFailure if checks failed."""
    start_reaper()
    arguments = [*seed_arguments([seed], [mix], mutant), f"--shrink={file.resolve()}"]
    arguments += [] if guarantee is None else [f"--guarantee={guarantee}"]
    child = run_child(arguments, limit_s=limit_s)
    _require_checks(child)
    if child.exit_code != 0:
        raise NoSimulation(_last_lines(child) or f"no end within {limit_s:.0f} s")
    return msgspec.json.decode(child.output.strip().splitlines()[-1], type=ShrunkSeed)


def repeat_schedule(file: Path, *, limit_s: float) -> Simulation:
    """Play a schedule again. Raises NoSimulation."""
    start_reaper()
    return simulation_of(run_child([f"--schedule={file.resolve()}"], limit_s=limit_s))


def simulation_of(child: Child) -> Simulation:
    """Parse the output of the child. Raises NoSimulation; LabFailure if checks of `draws`
    failed."""
    _require_checks(child)
    if child.exit_code == _CANNOT_PLAY:
        raise NoSimulation(child.errors.strip())
    return Simulation(
        runs=[
            msgspec.json.decode(line, type=SimulatedRun)
            for line in child.output.splitlines()
            if line.startswith("{") and line.endswith("}")
        ],
        exit_code=child.exit_code,
        output=_last_lines(child),
        seconds=round(child.seconds, 1),
    )


def _require_checks(child: Child) -> None:
    if child.exit_code == _CHECKS_FAILED:
        raise LabFailure(f"checks of the simulation failed:\n{child.errors.strip()}")


def _last_lines(child: Child) -> str:
    return "\n".join(child.errors.splitlines()[-_LINES:])


_LINES = 12
_CANNOT_PLAY = 3
_CHECKS_FAILED = 4
