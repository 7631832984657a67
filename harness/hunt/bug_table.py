"""The table of published bugs: how often each was found on an affected release, and on the fixed
one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from urteil.harness.confidence import lower_bound
from urteil.harness.hunt.job import Job, Row
from urteil.harness.hunt.markdown_table import markdown
from urteil.harness.known_bugs import KnownBug

ENOUGH = 0.8
"""The share of tries that must find a bug."""


class BugLine(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one bug: on the release `broken`, and on `fixed`.

    `tries` and `fixed_tries` are the seeds that were played, `unknown` and `fixed_unknown` those
    without a judgement. `found` counts tries in which `guarantee` was violated in one of its
    sub-kinds; `first_s` has the times of the first findings. `violated` counts tries by guarantee.
    """

    bug: str
    issue: str
    scenario: str
    guarantee: str
    sub_kinds: tuple[str, ...]
    broken: str
    fixed: str
    tries: list[int]
    found: int
    unknown: int
    fixed_tries: list[int]
    fixed_found: int
    fixed_unknown: int
    at_least: float
    first_s: list[float]
    seconds: float
    violated: dict[str, int]
    fixed_violated: dict[str, int]

    @property
    def enough(self) -> bool:
        """Whether it was found in eight of ten tries, in none of the fixed release, and that one
        was judged."""
        judged = len(self.fixed_tries) > self.fixed_unknown
        return bool(
            self.tries and judged and not self.fixed_found
            and self.found >= ENOUGH * len(self.tries)
        )  # fmt: skip

    @property
    def doubtful(self) -> bool:
        """Whether a try is missing, or could not be judged."""
        return not self.tries or not self.fixed_tries or self.unknown + self.fixed_unknown > 0


class BugTable(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of all bugs."""

    lines: list[BugLine]

    @property
    def verdict(self) -> str:
        """PASS if all are found, FAIL if one is not, UNKNOWN if one has no result."""
        missed = [line for line in self.lines if not line.enough]
        if not missed and self.lines:
            return "PASS"
        return "UNKNOWN" if all(line.doubtful for line in missed) else "FAIL"


def bug_jobs(bugs: Iterable[KnownBug], seeds: Sequence[int]) -> list[Job]:
    """Every bug under every seed, on an affected release and on the fixed one."""
    return [
        Job(scenario=bug.scenario, seed=seed, target=target, bug=bug.name)
        for bug in bugs
        for seed in seeds
        for target in (bug.broken_target, bug.fixed_target)
    ]


def bug_table(bugs: Iterable[KnownBug], rows: Sequence[Row]) -> BugTable:
    """The table of the runs so far. Bugs without a row have empty lines."""
    return BugTable(lines=[_line(bug, [row for row in rows if row.job.bug == bug.name])
                           for bug in bugs])  # fmt: skip


def _line(bug: KnownBug, rows: Sequence[Row]) -> BugLine:
    broken = [row for row in rows if row.job.target == bug.broken_target]
    fixed = [row for row in rows if row.job.target == bug.fixed_target]
    showing = [row for row in broken if bug.is_shown_by(row.shows, row.must_find)]
    seconds = [row.seconds for row in rows]
    return BugLine(
        bug=bug.name,
        issue=bug.issue,
        scenario=bug.scenario,
        guarantee=bug.guarantee,
        sub_kinds=bug.sub_kinds,
        broken=bug.broken,
        fixed=bug.fixed,
        tries=sorted(row.job.seed for row in broken),
        found=len(showing),
        unknown=sum(row.verdict == "UNKNOWN" for row in broken),
        fixed_tries=sorted(row.job.seed for row in fixed),
        fixed_found=sum(bug.is_shown_by(row.shows, row.must_find) for row in fixed),
        fixed_unknown=sum(row.verdict == "UNKNOWN" for row in fixed),
        at_least=round(lower_bound(len(showing), len(broken)), 4),
        first_s=[s for row in showing if (s := _first_s(bug, row)) is not None],
        seconds=round(median(seconds), 1) if seconds else 0.0,
        violated=_count_violations(broken),
        fixed_violated=_count_violations(fixed),
    )


def _first_s(bug: KnownBug, row: Row) -> float | None:
    seconds = (row.first_s.get(name) for name in bug.guarantees)
    return min((s for s in seconds if s is not None), default=None)


def _count_violations(rows: Sequence[Row]) -> dict[str, int]:
    return dict(sorted(Counter(name for row in rows for name in row.violated).items()))


def bug_table_text(table: BugTable) -> str:
    """The table in Markdown, one line for each bug."""
    heads = ("bug", "scenario", "guarantee", "has it", "found", "at least", "first finding",
             "fixed it", "found there", "s a run", "shows", "shown there")  # fmt: skip
    return markdown(heads, [_line_cells(line) for line in table.lines])


def _line_cells(line: BugLine) -> list[str]:
    tries, fixed_tries = len(line.tries), len(line.fixed_tries)
    return [
        line.issue,
        line.scenario,
        f"{line.guarantee} ({', '.join(line.sub_kinds)})",
        line.broken,
        _count(line.found, tries, line.unknown),
        f"{line.at_least:.0%}" if tries else "-",
        first_finding(line),
        line.fixed,
        _count(line.fixed_found, fixed_tries, line.fixed_unknown),
        f"{line.seconds:.0f}" if tries + fixed_tries else "-",
        _names(line.violated),
        _names(line.fixed_violated),
    ]


def _count(count: int, tries: int, unknown: int) -> str:
    if not tries:
        return "not played"
    return f"{count} of {tries}" + (f", {unknown} UNKNOWN" if unknown else "")


def first_finding(line: BugLine) -> str:
    """The median of the times. Findings in logs on disk have no time."""
    if line.first_s:
        return f"{median(line.first_s):.1f} s"
    return "at the end" if line.found else "-"


def _names(violated: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in violated.items()) or "nothing"
