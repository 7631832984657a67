"""The table of a night: the bound that clean seeds support, the findings, and every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from urteil.harness.confidence import upper_bound
from urteil.harness.hunt.bug_table import bug_table, bug_table_text
from urteil.harness.hunt.investigated_failure import Failure
from urteil.harness.hunt.job import Row
from urteil.harness.hunt.markdown_table import markdown
from urteil.harness.hunt.matrix import ExpectedCatch, matrix_of, text_of
from urteil.harness.hunt.state_summary import missed_lines, reach_line, summarise_states
from urteil.harness.known_bugs import KnownBug
from urteil.harness.verify.plurals import count_text


def night_text(
    rows: Sequence[Row],
    mutants: Sequence[ExpectedCatch],
    left_out: Sequence[str],
    failures: Sequence[tuple[Failure, int]] = (),
    bugs: Sequence[KnownBug] = (),
) -> str:
    """table.md: the summary first, every run last."""
    plain = [row for row in rows if row.job.is_plain]
    sections = ["# The night", _count_line(rows), summary(plain)]
    if left_out:
        sections.append("Not played: " + "; ".join(left_out) + ".\n")
    if any(row.job.mutant for row in rows):
        tried = {row.job.mutant for row in rows}
        met = [mutant for mutant in mutants if mutant.name in tried]
        sections += ["## Mutants", text_of(matrix_of(met, rows))]
    if any(row.job.bug for row in rows):
        tried = {row.job.bug for row in rows}
        table = bug_table([bug for bug in bugs if bug.name in tried], rows)
        sections += ["## Published bugs", bug_table_text(table)]
    if failures:
        sections += ["## Failures", _failures(failures)]
    if counted := [row.states for row in plain if row.states is not None]:
        sections += ["## Rare states", _states(counted)]
    sections += ["## What is not PASS", _findings_table(plain), "## All runs", _run_table(rows)]
    return "\n".join(sections)


def summary(rows: Sequence[Row]) -> str:
    """One line for each scenario and target, and one for each target, with its bound. The bound
    counts only judged runs, and is printed if none failed."""
    targets = sorted({row.job.target for row in rows})
    names = sorted({row.job.scenario for row in rows})
    heads = ("target", "scenario", "seeds", "PASS", "FAIL", "UNKNOWN", "mean s", "must find",
             "fails at most")  # fmt: skip
    lines = []
    for target in targets:
        target_rows = [row for row in rows if row.job.target == target]
        lines.append(_line(target, "all", target_rows))
        lines += [
            _line(target, name, scenario_rows)
            for name in names
            if (scenario_rows := _rows_of_scenario(target_rows, name))
        ]
    return markdown(heads, lines)


def _rows_of_scenario(rows: Sequence[Row], scenario: str) -> list[Row]:
    return [row for row in rows if row.job.scenario == scenario]


def _line(target: str, name: str, rows: Sequence[Row]) -> list[str]:
    counts = {v: sum(row.verdict == v for row in rows) for v in ("PASS", "FAIL", "UNKNOWN")}
    judged = counts["PASS"] + counts["FAIL"]
    bound = f"{upper_bound(counts['FAIL'], judged):.1%}" if judged else "-"
    must_finds = [is_found for row in rows for is_found in row.must_find.values()]
    must = f"{sum(must_finds)} of {len(must_finds)}" if must_finds else ""
    seconds = sum(row.seconds for row in rows) / len(rows)
    return [target, name, str(len(rows)), *map(str, counts.values()), f"{seconds:.0f}", must, bound]


def _count_line(rows: Sequence[Row]) -> str:
    hours = sum(row.seconds for row in rows) / 3600
    return (
        f"{count_text(len(rows), 'run')} in {hours:.1f} h. `fails at most`: the one-sided "
        "Clopper-Pearson bound of how often a run fails, with 95 % confidence (50 clean seeds: "
        "5.8 %); UNKNOWN runs do not count.\n"
    )


def _states(counted: Sequence[Mapping[str, int]]) -> str:
    """The number of rare states that the runs reached, and the states that none reached."""
    reach = summarise_states(counted)
    missed = "".join(f"- {line}\n" for line in missed_lines(reach)) or "- none\n"
    return f"{reach_line(reach, counted)}. Never reached:\n\n{missed}"


def _failures(failures: Sequence[tuple[Failure, int]]) -> str:
    heads = ("found", "target", "first by", "at", "tonight", "again", "smallest schedule")
    return markdown(
        heads,
        (
            [failure.signature, failure.job.mutant or failure.job.target,
             f"{failure.job.scenario}, seed {failure.job.seed}", failure.at,
             str(count), failure.rate, failure.shortest]
            for failure, count in failures
        ),
    )  # fmt: skip


def _findings_table(rows: Sequence[Row]) -> str:
    other_rows = [row for row in rows if row.verdict != "PASS"]
    if not other_rows:
        return "Nothing.\n"
    heads = ("verdict", "target", "scenario", "seed", "why", "run")
    return markdown(
        heads,
        (
            [row.verdict, row.job.target, row.job.scenario, str(row.job.seed),
             " / ".join(row.reasons[:2]).replace("|", "/"), row.run]
            for row in other_rows
        ),
    )  # fmt: skip


def _run_table(rows: Sequence[Row]) -> str:
    heads = ("at", "scenario", "target", "mutant", "seed", "verdict", "seconds", "findings")
    return markdown(
        heads,
        (
            [row.at, row.job.scenario, row.job.target, row.job.mutant or row.job.bug or "",
             str(row.job.seed),
             row.verdict, f"{row.seconds:.0f}",
             ", ".join(f"{name} {count}" for name, count in row.violated.items())]
            for row in rows
        ),
    )  # fmt: skip
