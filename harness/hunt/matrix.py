"""The matrix of mutants and guarantees: which guarantee caught which mutant, how often and how
soon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from urteil.harness.confidence import lower_bound
from urteil.harness.hunt.job import Job, Row
from urteil.harness.hunt.markdown_table import markdown


class ExpectedCatch(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant, the scenario that plays it, and the guarantee that must catch it."""

    name: str
    scenario: str
    guarantee: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one mutant.

    It counts as caught under a seed when the guarantee meant for it is violated, its patched line
    ran, and its twin (same scenario and seed, unchanged broker) passes. `violated` counts seeds by
    guarantee. `first_s` has the time of the meant guarantee's first finding, by seed.
    """

    mutant: str
    scenario: str
    guarantee: str
    seeds: list[int]
    caught: int
    ran: int
    twins: int
    unknown: int
    violated: dict[str, int]
    first_s: list[float]
    at_least: float

    @property
    def enough(self) -> bool:
        """Every seed of up to nine, or nine of ten of more."""
        tried = len(self.seeds)
        return tried > 0 and (self.caught == tried or (tried >= 10 and self.caught >= 0.9 * tried))

    @property
    def doubtful(self) -> bool:
        """Nothing was played, or the runs say nothing about the mutant."""
        return not self.seeds or self.unknown > 0 or self.twins < len(self.seeds)


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All lines, and every guarantee that was violated."""

    lines: list[Line]
    guarantees: list[str]

    @property
    def verdict(self) -> str:
        """PASS if all are caught, FAIL if one is not, UNKNOWN if one has no result."""
        missed = [line for line in self.lines if not line.enough]
        if not missed and self.lines:
            return "PASS"
        return "UNKNOWN" if all(line.doubtful for line in missed) else "FAIL"


def plan_jobs(mutants: Iterable[ExpectedCatch], seeds: Sequence[int]) -> list[Job]:
    """Every mutant under every seed, each after its twin; a twin is played once for each
    scenario."""
    jobs: dict[Job, None] = {}
    for mutant in mutants:
        for seed in seeds:
            jobs[Job(scenario=mutant.scenario, seed=seed)] = None
            jobs[Job(scenario=mutant.scenario, seed=seed, mutant=mutant.name)] = None
    return list(jobs)


def matrix_of(mutants: Iterable[ExpectedCatch], rows: Sequence[Row]) -> Matrix:
    """The matrix of the runs so far. Mutants without a row have empty lines."""
    lines = [_line(mutant, rows) for mutant in mutants]
    guarantees = {name for line in lines for name in line.violated} | {
        line.guarantee for line in lines
    }
    return Matrix(lines=lines, guarantees=sorted(guarantees))


def _line(mutant: ExpectedCatch, rows: Sequence[Row]) -> Line:
    twins = {
        row.job.seed: row.verdict == "PASS"
        for row in rows
        if row.job == Job(scenario=mutant.scenario, seed=row.job.seed)
    }
    mutant_rows = [
        row for row in rows if row.job.mutant == mutant.name and row.job.scenario == mutant.scenario
    ]
    caught = [
        row
        for row in mutant_rows
        if mutant.guarantee in row.violated and row.mutant_ran and twins.get(row.job.seed)
    ]
    violated: dict[str, int] = {}
    for row in mutant_rows:
        for name in row.violated:
            violated[name] = violated.get(name, 0) + 1
    return Line(
        mutant=mutant.name,
        scenario=mutant.scenario,
        guarantee=mutant.guarantee,
        seeds=sorted(row.job.seed for row in mutant_rows),
        caught=len(caught),
        ran=sum(bool(row.mutant_ran) for row in mutant_rows),
        twins=sum(bool(twins.get(row.job.seed)) for row in mutant_rows),
        unknown=sum(row.verdict == "UNKNOWN" for row in mutant_rows),
        violated=dict(sorted(violated.items())),
        first_s=[s for row in caught if (s := row.first_s.get(mutant.guarantee)) is not None],
        at_least=round(lower_bound(len(caught), len(mutant_rows)), 4),
    )


def _first(line: Line) -> str:
    """The earliest first finding. Findings in logs on disk have no time."""
    if line.first_s:
        return f"{median(line.first_s):.1f} s"
    return "at the end" if line.caught else "-"


def text_of(matrix: Matrix) -> str:
    """The matrix as a Markdown table: one column a guarantee, cells `caught of seeds`, the meant
    one in bold."""
    heads = ["mutant", "scenario", "caught", "at least", "first catch", "line ran", "twin passes"]
    rows = []
    for line in matrix.lines:
        tried = len(line.seeds)
        cells = [
            line.mutant,
            line.scenario,
            f"{line.caught} of {tried}" if tried else "-",
            f"{line.at_least:.0%}" if tried else "-",
            _first(line),
            f"{line.ran} of {tried}" if tried else "-",
            f"{line.twins} of {tried}" if tried else "-",
        ]
        for name in matrix.guarantees:
            count = line.violated.get(name, 0)
            cell = str(count) if count else ""
            cells.append(f"**{count}**" if name == line.guarantee else cell)
        rows.append(cells)
    return markdown(heads + matrix.guarantees, rows)
