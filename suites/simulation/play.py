"""`python -m urteil.suites.simulation.play --seed N ...`: seeds in turn, a JSON line for each.

A seed is played in every mix of clients, or in those of `--mix`; with `--mutant NAME` on brokers
with a seeded bug. Another program plays seeds by it: `--lines DIR` records which lines of the
broker run, `--bug FILE` plays them on brokers with a drawn bug and ends at the first finding.
`--shrink FILE` shrinks the finding of the one seed and mix, and writes the smallest run to the
file; `--schedule FILE` plays that again. `--draws FILE` plays a seed whose faults begin as those of
another run, and replaces the file by the run's own draws and its rows of evidence. It runs in the
environment of the simulation, and starts itself again there.

A check that fails is an error of the lab and no finding: the row of the seed has it in `errors`.
`--shrink` and `--draws` end with `CHECKS_FAILED` then.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from urteil.chaos.similar_names import suggest
from urteil.suites.simulation.environment import interpreter, module_command
from urteil.suites.source_hook import BROKER

if TYPE_CHECKING:
    from urteil.suites.drawn_bugs.bug import DrawnBug
    from urteil.suites.simulation.scenario import Run

MODULE = "urteil.suites.simulation.play"
CANNOT_PLAY = 3
"""The exit code without a Python for it, for an unknown name, and for a bug of other source."""
CHECKS_FAILED = 4
"""The exit code if checks failed, where no row could have that."""
MEMORY = 3 << 30


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}")
    parser.add_argument("--seed", type=int, action="append", default=[])
    parser.add_argument("--mix", action="append", default=[])
    parser.add_argument("--mutant")
    parser.add_argument("--draws", type=Path, action="append", default=[])
    parser.add_argument("--shrink", type=Path)
    parser.add_argument("--guarantee")
    parser.add_argument("--schedule", type=Path)
    parser.add_argument("--lines", type=Path)
    parser.add_argument("--bug", type=Path)
    parser.add_argument("--processor-s", type=int, help="end it after so much processor time")
    options = parser.parse_args(arguments)
    try:
        drawn = None if options.bug is None else _load(options.bug)
    except ValueError as error:
        print(error, file=sys.stderr)
        return CANNOT_PLAY
    if importlib.util.find_spec("simloop") is None:
        return _start_in_environment(arguments)
    if options.processor_s is not None:
        _limit(options.processor_s)
    if options.lines is not None:
        _record_lines(options.lines)
    if not all([_play_draws(file) for file in options.draws]):
        return CHECKS_FAILED
    bug = _Bug() if drawn is None else _import_with_bug(drawn)
    try:
        if options.mutant is not None:
            _apply_mutant(options.mutant, bug)
        if options.schedule is not None:
            _repeat(options.schedule, bug)
        elif options.shrink is not None:
            _shrink(options)
        else:
            _play(options.seed, options.mix, bug)
    except _CannotPlay as error:
        print(error, file=sys.stderr)
        return CANNOT_PLAY
    except _ChecksFailed as error:
        print(error, file=sys.stderr)
        return CHECKS_FAILED
    return 0


def _start_in_environment(arguments: list[str]) -> int:
    from urteil.harness.dependencies.simulation_python import HOW, simulation_python

    python = simulation_python()
    if python is None:
        print(f"no Python 3.12 or newer on this machine; {HOW}", file=sys.stderr)
        return CANNOT_PLAY
    command = module_command(interpreter(*python), MODULE)
    os.execv(command[0], [*command, *arguments])


def _record_lines(folder: Path) -> None:
    from urteil.suites.coverage.compilation import compile_with_probes
    from urteil.suites.coverage.line_files import set_folder
    from urteil.suites.source_hook import install

    set_folder(folder)
    install(compile_with_probes)


@dataclass(slots=True)
class _Bug:
    """Whether there is one, and whether its line ran."""

    is_there: bool = False
    ran: bool = False

    def hit(self) -> None:
        self.ran = True


def _load(path: Path) -> DrawnBug:
    """Raises ValueError if the file is not a drawn bug, or one of other source."""
    from urteil.suites.drawn_bugs.bug import load_bug

    drawn = load_bug(path)
    drawn.change((BROKER.parent / drawn.file).read_text())
    return drawn


def _import_with_bug(drawn: DrawnBug) -> _Bug:
    from urteil.suites.drawn_bugs.changed_module import import_with_bug

    bug = _Bug(is_there=True)
    import_with_bug(drawn, bug.hit)
    return bug


def _limit(processor_s: int) -> None:
    """What never ends, or fills the memory, ends by itself."""
    resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class _CannotPlay(Exception):
    """There is no mix or mutant of that name, or nothing to shrink or to play again."""


class _ChecksFailed(Exception):
    """An error of the lab instead of the finding to shrink."""


def _require_known(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise _CannotPlay(f"no {kind} is named {name}; {suggest(name, sorted(known))}")


def _apply_mutant(name: str, bug: _Bug) -> None:
    from urteil.suites.mutants import MUTANTS
    from urteil.suites.mutants.patching import Mark

    class Hit(Mark):
        def hit(self) -> None:
            bug.hit()

    _require_known("mutant", name, MUTANTS)
    MUTANTS[name].apply(Hit(None))


def _play(seeds: list[int], mixes: list[str], bug: _Bug) -> None:
    """Play the seeds in the mixes. With a drawn bug, end at the first finding."""
    from urteil.suites.simulation.mixes import MIXES
    from urteil.suites.simulation.scenario import simulate

    for mix in mixes:
        _require_known("mix", mix, MIXES)
    for seed in seeds:
        runs = [simulate(seed, mix=mix) for mix in mixes or MIXES]
        _print(runs, bug)
        if bug.is_there and any(run.findings for run in runs):
            return


def _print(runs: list[Run], bug: _Bug) -> None:
    """The row of a seed."""
    findings = {
        finding.guarantee: finding.sentence for run in runs for finding in run.findings[::-1]
    }
    errors = [
        {"mix": run.mix, "check": error.check, "error": error.error}
        for run in runs
        for error in run.errors
    ]
    row = {
        "seed": runs[0].seed, "findings": findings, "errors": errors, "bug_ran": bug.ran,
        "seconds": round(sum(run.real_s for run in runs), 2),
        "virtual_s": round(sum(run.virtual_s for run in runs), 1),
    }  # fmt: skip
    print(json.dumps(row), flush=True)


def _repeat(file: Path, bug: _Bug) -> None:
    """Play a schedule, with its mutant."""
    from urteil.suites.simulation.shrinking import BadSchedule, Case

    try:
        case = Case.read(file)
    except (OSError, BadSchedule) as error:
        raise _CannotPlay(str(error)) from None
    if case.mutant is not None:
        _apply_mutant(case.mutant, bug)
    _print([case.play()], bug)


def _shrink(options: argparse.Namespace) -> None:
    """Shrink the finding of a seed, and print what is left of it."""
    from urteil.suites.simulation.mixes import MIXES
    from urteil.suites.simulation.shrinking import ChecksFailed, NothingToShrink, shrink

    began = time.process_time()
    (seed,), (mix,) = options.seed, options.mix
    _require_known("mix", mix, MIXES)
    try:
        case, tries, before = shrink(seed, mix, options.guarantee, options.mutant)
    except NothingToShrink as error:
        raise _CannotPlay(str(error)) from None
    except ChecksFailed as error:
        raise _ChecksFailed(str(error)) from None
    case.write(options.shrink)
    row = {
        "guarantee": case.guarantee, "tries": tries, "faults_before": before,
        "faults": [f"{fault.name} at {fault.at_s:.1f} s" for fault in case.faults],
        "without": case.scale.without, "partitions": case.scale.partitions,
        "faults_s": case.scale.faults_s, "seconds": round(time.process_time() - began, 1),
    }  # fmt: skip
    print(json.dumps(row), flush=True)


def _play_draws(file: Path) -> bool:
    """Play the run that a file describes: `seed`, and `draws` with the `first` draws of its faults
    and the `seed` of the further ones. False if checks failed, which are printed."""
    from urteil.suites.simulation.draws import Draws
    from urteil.suites.simulation.mixes import Scale
    from urteil.suites.simulation.scenario import simulate

    request = json.loads(file.read_text())
    first = [draw if isinstance(draw, float) else tuple(draw) for draw in request["first"]]
    draws = Draws(request["draw_seed"], first)
    run = simulate(request["seed"], Scale(**request.get("scale", {})), draws)
    file.write_text(json.dumps({"made": draws.made, "rows": run.rows, "seconds": run.real_s}))
    for error in run.errors:
        print(f"seed {run.seed}: {error.check}: {error.error}", file=sys.stderr)
    return not run.errors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
