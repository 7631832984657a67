"""Runs of generated histories: correct ones, and ones whose topics are damaged, each in one way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.harness.verify.histories.damage import OF_KIND, Apply, Piece, Tables, Unfit
from tests.harness.verify.histories.history import KINDS, History
from tests.harness.verify.histories.tables import facts, scenario, tables
from urteil.harness.scenario import RunFacts
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import Trace
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Finding, Result


@dataclass(frozen=True, slots=True)
class Damaged:
    """A topic, the name of its damage, and the finding that the damage must cause."""

    topic: str
    name: str
    trace: Trace

    def __str__(self) -> str:
        return f"{self.name} in {self.topic}: {self.trace}"


def correct(seeds: Iterable[int]) -> tuple[list[History], Tables]:
    """Histories of every kind, `seeds` of each, as one run."""
    kinds = [(kind, seed) for seed in seeds for kind in KINDS]
    played = [
        History(run="r", number=number, kind=kind, seed=seed).play()
        for number, (kind, seed) in enumerate(kinds)
    ]
    return played, tables(played)


def damaged(seeds: Iterable[int]) -> tuple[list[History], Tables, list[Damaged]]:
    """Every damage done to a history of its own, `seeds` times, as one run."""
    tasks = [(kind, apply, s) for s in seeds for kind in KINDS for apply in OF_KIND[kind]]
    played: list[History] = []
    damaged_histories: list[Damaged] = []
    tables: Tables = defaultdict(list)
    for number, (kind, apply, seed) in enumerate(tasks):
        history, piece, trace = _damaged(number, kind, apply, seed)
        played.append(history)
        damaged_histories.append(Damaged(history.topic, apply.__name__, trace))
        for name, rows in piece.items():
            tables[name] = rows if name == "faults" else tables[name] + rows
    return played, tables, damaged_histories


def _damaged(number: int, kind: str, apply: Apply, seed: int) -> tuple[History, Tables, Trace]:
    """The first history from `seed` on that can be damaged so."""
    for attempt in count():
        history = History(run="r", number=number, kind=kind, seed=100 * seed + attempt).play()
        piece = Piece(tables([history]), history.topic, Random(f"{apply.__name__}/{seed}"))
        try:
            trace = apply(piece)
        except Unfit:
            assert attempt < 60, f"no history can be damaged by {apply.__name__}"
            continue
        return history, piece.tables, trace
    raise AssertionError


def judged(
    run_dir: Path,
    histories: Sequence[History],
    rows: Tables,
    *,
    engine: str = "duckdb",
    session: Any = None,
    run_facts: RunFacts | None = None,
) -> Result:
    """The verdict over a run of these histories."""
    synthetic.write_run(run_dir, rows, scenario(histories), run_facts or facts(histories))
    return judge_run(run_dir, engine=engine, master=None, session=session, canary=False)


def findings(result: Result, damaged: Damaged) -> list[Finding]:
    """The findings that the damage must cause."""
    return [
        finding
        for guarantee in result.guarantees
        if guarantee.name == damaged.trace.guarantee
        for finding in guarantee.findings
        if finding.topic == damaged.topic and not finding.permitted
        if finding.sub_kind.startswith(damaged.trace.sub_kind)
        if damaged.trace.offset in (None, finding.offset)
    ]
