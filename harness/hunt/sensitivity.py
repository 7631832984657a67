"""Sensitivity: the share of randomly drawn bugs that the simulation and the scenarios find.

A bug is first played in the simulation, unless no seed executes its line: until then the run is
that of the unchanged broker, so nothing can be found. A bug that survives is played in the
scenarios that execute its line. A bug counts as found if a guarantee is violated whose twin, the
same seed with the unchanged broker, passes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from urteil.harness.confidence import lower_bound
from urteil.harness.hunt.job import Job, Row
from urteil.harness.hunt.markdown_table import markdown
from urteil.harness.hunt.simulation import Simulation, simulate

FOUND, CRASH, SURVIVED, EQUIVALENT = "found", "crash", "survived", "equivalent"
SEED_PROCESSOR_S = 40.0
SEED_LIMIT_S = 900.0


class Bug(Protocol):
    """A drawn bug (suites/drawn_bugs)."""

    @property
    def name(self) -> str: ...
    @property
    def room(self) -> str: ...
    @property
    def slip(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def diff(self) -> str: ...


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a bug.

    `by` is the guarantee that found it, or how it crashed; `where` the run that did, `seconds` its
    processor time in the simulation, and in a scenario its duration. `ran`: its line ran in a run.
    `tried` are the runs. `errors` are the lab's own, and no finding. `reason` is the reason for
    which the bug is equivalent.
    """

    name: str
    room: str
    slip: str
    file: str
    function: str
    diff: str
    outcome: str = SURVIVED
    by: str = ""
    where: str = ""
    seconds: float = 0.0
    ran: bool = False
    tried: list[str] = []
    errors: list[str] = []
    reason: str = ""


def new_trial(bug: Bug) -> Trial:
    return Trial(
        name=bug.name,
        room=bug.room,
        slip=bug.slip,
        file=bug.file,
        function=bug.function,
        diff=bug.diff,
    )


Simulate = Callable[..., Simulation]


def try_in_simulation(
    trial: Trial, bug_file: Path, seeds: Sequence[int], *, play: Simulate = simulate
) -> Trial:
    """Play the bug under the seeds until one finds it. Seeds must pass without it."""
    played = play(
        seeds,
        bug=bug_file,
        limit_s=SEED_LIMIT_S * len(seeds),
        processor_s=SEED_PROCESSOR_S * len(seeds),
    )
    done = msgspec.structs.replace(
        trial,
        ran=trial.ran or any(run.bug_ran for run in played.runs),
        tried=[*trial.tried, *(f"simulation, seed {run.seed}" for run in played.runs)],
        seconds=round(sum(run.seconds for run in played.runs), 1),
        errors=[
            *trial.errors,
            *(f"simulation, seed {run.seed}: {each}" for run in played.runs for each in run.errors),
        ],
    )
    for run in played.runs:
        if run.findings:
            by = ", ".join(sorted(run.findings))
            return msgspec.structs.replace(
                done, outcome=FOUND, by=by, where=f"simulation, seed {run.seed}"
            )
    if len(played.runs) == len(seeds):
        return done
    seed = seeds[len(played.runs)]
    last = played.output.strip().splitlines()[-1:] or [f"exit code {played.exit_code}"]
    return msgspec.structs.replace(
        done,
        outcome=CRASH,
        ran=True,
        by="does not end" if played.is_late else last[0][:200],
        where=f"simulation, seed {seed}",
        tried=[*done.tried, f"simulation, seed {seed}"],
    )


def try_in_scenario(
    trial: Trial, bug_file: Path, scenario: str, seed: int, *, play: Callable[[Job], Row]
) -> Trial:
    """Play the bug in a scenario, and the unchanged broker under the same seed if it is FAIL."""
    row = play(Job(scenario=scenario, seed=seed, mutant=str(bug_file.resolve())))
    where = f"{scenario}, seed {seed}"
    done = msgspec.structs.replace(
        trial,
        ran=trial.ran or bool(row.mutant_ran),
        tried=[*trial.tried, f"{where}: {row.verdict}"],
    )
    if row.verdict != "FAIL":
        return done
    twin = play(Job(scenario=scenario, seed=seed))
    new = sorted(set(row.violated) - set(twin.violated))
    if twin.verdict != "PASS" or not new:
        return done
    return msgspec.structs.replace(
        done, outcome=FOUND, by=", ".join(new), where=where, seconds=row.seconds
    )


def choose_scenarios(
    by_line: Mapping[int, Sequence[str]], line: int, most: int, *, without: str
) -> list[str]:
    """The scenarios that execute a line of a file, those first that execute most of the file."""
    counts: dict[str, int] = {}
    for scenarios in by_line.values():
        for scenario in scenarios:
            counts[scenario] = counts.get(scenario, 0) + 1
    chosen = [scenario for scenario in by_line.get(line, ()) if scenario != without]
    return sorted(chosen, key=lambda name: (-counts[name], name))[:most]


def load_equivalent(path: Path) -> dict[str, str]:
    """The reasons why bugs are equivalent, by their names. Raises ValueError for a bad file."""
    try:
        reasons = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    for name, reason in reasons.items():
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f'{path}: {name}: write {name} = "why no user sees a difference"')
    return reasons


class RoomLine(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a room. `judged` are the drawn bugs without the equivalent ones, `unreached`
    the survivors whose line no run executed. `at_least` is the Clopper-Pearson bound, 95 %."""

    room: str
    drawn: int
    equivalent: int
    judged: int
    found: int
    crashed: int
    survived: int
    unreached: int
    at_least: float

    @property
    def sensitivity(self) -> float | None:
        """The share of the judged bugs that were found; None without any."""
        return (self.found + self.crashed) / self.judged if self.judged else None


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """The campaign so far: `rooms` ends with the line of all."""

    seed: int
    rooms: list[RoomLine]
    trials: list[Trial]


def sensitivity_of(seed: int, trials: Sequence[Trial], reasons: Mapping[str, str]) -> Sensitivity:
    """The results, where `reasons` names the equivalent bugs. A bug that was found is none."""
    judged = [
        msgspec.structs.replace(trial, outcome=EQUIVALENT, reason=reasons[trial.name])
        if trial.outcome == SURVIVED and trial.name in reasons
        else trial
        for trial in trials
    ]
    rooms = dict.fromkeys(trial.room for trial in judged)
    lines = [_line(room, [trial for trial in judged if trial.room == room]) for room in rooms]
    return Sensitivity(seed=seed, rooms=[*lines, _line("all", judged)], trials=judged)


def _line(room: str, trials: Sequence[Trial]) -> RoomLine:
    counts = {
        outcome: sum(trial.outcome == outcome for trial in trials)
        for outcome in (FOUND, CRASH, SURVIVED, EQUIVALENT)
    }
    judged = len(trials) - counts[EQUIVALENT]
    return RoomLine(
        room=room,
        drawn=len(trials),
        equivalent=counts[EQUIVALENT],
        judged=judged,
        found=counts[FOUND],
        crashed=counts[CRASH],
        survived=counts[SURVIVED],
        unreached=sum(trial.outcome == SURVIVED and not trial.ran for trial in trials),
        at_least=round(lower_bound(counts[FOUND] + counts[CRASH], judged), 4) if judged else 0.0,
    )


def text_of(sensitivity: Sensitivity) -> str:
    """The results in Markdown: rooms, found bugs, errors of the lab, and each survivor with its
    diff."""
    parts = [_rooms_text(sensitivity.rooms)]
    found = [trial for trial in sensitivity.trials if trial.outcome in (FOUND, CRASH)]
    if found:
        heads = ("found", "slip", "function", "by", "run", "s")
        parts.append("## Found\n\n" + markdown(heads, map(_found_cells, found)))
    errors = [
        f"* {trial.name}: {error}\n" for trial in sensitivity.trials for error in trial.errors
    ]
    if errors:
        parts.append("## Errors of the lab\n\n" + "".join(errors))
    for title, outcome in (("Survived", SURVIVED), ("Equivalent", EQUIVALENT)):
        trials = [trial for trial in sensitivity.trials if trial.outcome == outcome]
        if trials:
            parts.append(f"## {title}\n\n" + "\n".join(map(_survivor_text, trials)))
    return "\n".join(parts)


def _rooms_text(lines: Iterable[RoomLine]) -> str:
    heads = ("room", "drawn", "equivalent", "found", "by crash", "survived", "line never ran",
             "sensitivity", "at least")  # fmt: skip
    rows = [
        [
            line.room,
            *map(str, (line.drawn, line.equivalent, line.found, line.crashed, line.survived)),
            str(line.unreached),
            "-" if line.sensitivity is None else f"{line.sensitivity:.0%}",
            f"{line.at_least:.0%}",
        ]
        for line in lines
    ]
    return markdown(heads, rows)


def _found_cells(trial: Trial) -> list[str]:
    function = f"{trial.file} {trial.function}"
    by = f"crash: {trial.by}" if trial.outcome == CRASH else trial.by
    return [
        trial.name,
        trial.slip,
        function,
        by.replace("|", " "),
        trial.where,
        f"{trial.seconds:.0f}",
    ]


def _survivor_text(trial: Trial) -> str:
    ran = "its line ran" if trial.ran else "its line never ran"
    tried = ", ".join(trial.tried) or "not played"
    reason = f" {trial.reason}" if trial.reason else ""
    return (
        f"**{trial.name}** ({trial.slip}) in `{trial.function}`: {ran}; {tried}.{reason}\n\n"
        f"```diff\n{trial.diff}\n```\n"
    )
