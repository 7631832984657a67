"""The rare states that the last runs reached: counts, and scenarios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from urteil.harness.hunt.job import Row
from urteil.harness.hunt.ledger import read_ledger
from urteil.harness.hunt.markdown_table import markdown
from urteil.harness.run.heal_request import is_being_played
from urteil.harness.scenario import load_facts
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.rare_states import ROOMS, STATES

LEDGER = "ledger.jsonl"
SHOWN = 3
"""The number of scenarios of a state that the table names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """A run with its counts. `at` sorts runs by the time of their begin."""

    name: str
    at: str
    scenario: str
    target: str
    reached: Mapping[str, int]


@dataclass(slots=True)
class StateReach:
    """One state over several runs. `counted`: runs that could have reached it; `runs`: runs that
    reached it; `times`: the sum of their counts."""

    counted: int = 0
    runs: int = 0
    times: int = 0
    scenarios: Counter[str] = field(default_factory=Counter)


def summarise_states(runs: Iterable[Mapping[str, int]]) -> dict[str, StateReach]:
    """The reach of every state over the counts of runs, without scenarios."""
    return _summarise(("", counts) for counts in runs)


def summarise_runs(runs: Iterable[CountedRun]) -> dict[str, StateReach]:
    """The reach of every state."""
    return _summarise((run.scenario, run.reached) for run in runs)


def _summarise(runs: Iterable[tuple[str, Mapping[str, int]]]) -> dict[str, StateReach]:
    reach = {name: StateReach() for name in STATES}
    for scenario, counts in runs:
        for name, count in counts.items():
            if name not in reach:  # a state of an earlier version
                continue
            state = reach[name]
            state.counted += 1
            state.runs += bool(count)
            state.times += count
            state.scenarios[scenario] += bool(count)
    return reach


def read_run(folder: Path) -> CountedRun:
    """A run by its folder. Raises ValueError, with the reason, if its states cannot be counted."""
    from urteil.harness.verify.rare_states.counting import saved_counts

    if is_being_played(folder):
        raise ValueError("it is being played")
    try:
        facts, counts = load_facts(folder), saved_counts(folder)
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise ValueError(getattr(error, "strerror", None) or str(error)) from error
    return CountedRun(name=folder.name, at=_digits(folder.name), scenario=facts.scenario,
                      target=facts.target, reached=counts.reached)  # fmt: skip


def run_folders(folder: Path) -> list[Path]:
    """The folders of runs directly below `folder`, and below its campaigns of which no ledger has
    the counts."""
    inner = {path.parent for path in folder.glob("*/run.json") if not path.parent.is_symlink()}
    for ledger in folder.glob(f"*/{LEDGER}"):
        kept = {row.run for row in read_ledger(ledger) if row.states is not None}
        found = (path.parent for path in ledger.parent.glob("runs/*/run.json"))
        inner |= {path for path in found if str(path.resolve()) not in kept}
    return sorted(inner, key=lambda path: (path.name, path))


def ledger_runs(folder: Path) -> Iterator[CountedRun]:
    """The counted runs of campaigns below `folder`, also those whose folders were pruned."""
    for ledger in sorted(folder.glob(f"*/{LEDGER}")):
        for row in read_ledger(ledger):
            if row.states is not None:
                yield _run_of(row)


def _run_of(row: Row) -> CountedRun:
    job = row.job
    name = Path(row.run).name if row.run else f"{job.scenario}-{job.seed}"
    return CountedRun(name=name, at=_digits(row.at), scenario=job.scenario,
                      target=job.target, reached=row.states or {})  # fmt: skip


def _digits(at: str) -> str:
    """The time in a text, as digits that sort: `20261128-0912` and `2026-11-28 09:12` alike."""
    return "".join(filter(str.isdigit, at))[:14]


def reach_table(reach: Mapping[str, StateReach]) -> str:
    """A table of the states that were reached, by subject."""
    heads = ("room", "state", "runs", "times", "scenarios")
    rows = [
        [
            room,
            state.name,
            f"{its.runs} of {its.counted}",
            f"{its.times:,}",
            _first_scenarios(its.scenarios),
        ]
        for room, states in ROOMS.items()
        for state in states
        if (its := reach[state.name]).runs
    ]
    return markdown(heads, rows) if rows else ""


def _first_scenarios(scenarios: Counter[str]) -> str:
    names = [name for name, count in scenarios.most_common() if count]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def missed_lines(reach: Mapping[str, StateReach]) -> list[str]:
    """The states that were never reached, by subject, and those that no run could reach."""
    lines = []
    for room, states in ROOMS.items():
        names = [state.name for state in states if not reach[state.name].runs]
        shown = [name if reach[name].counted else f"{name} (no run could)" for name in names]
        if shown:
            lines.append(f"{room}: {', '.join(shown)}")
    return lines


def reach_line(reach: Mapping[str, StateReach], runs: Sequence[object]) -> str:
    """The number of states that were reached."""
    count = sum(bool(state.runs) for state in reach.values())
    states = count_text(len(reach), "rare state")
    return f"{count} of {states} reached in {count_text(len(runs), 'run')}"
