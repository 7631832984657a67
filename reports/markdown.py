"""A run in Markdown: a summary for a CI job, and the text of an issue.

Names and values come from a cluster; they are escaped, or stand in code spans and blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from urteil.harness.verify.rare_states.counts import load_counts
from urteil.harness.verify.result import Finding, Result, Status
from urteil.reports.page import sentence
from urteil.reports.run_loading import load_run

SHOWN = 5
LONGEST = 300
MARKS = {"PASS": "✅", "FAIL": "❌", "UNKNOWN": "❔"}


def summary(run_dir: Path) -> str:
    """A few lines of Markdown for the summary of a CI job. Raises FileNotFoundError for no run."""
    return "\n".join(_summary(run_dir)) + "\n"


def _summary(run_dir: Path) -> Iterator[str]:
    run = load_run(run_dir)
    result = run.result
    yield f"### {MARKS[result.verdict]} {result.verdict}: {text(sentence(result))}"
    yield ""
    yield f"Scenario {code(result.scenario)} on {code(result.target)}, seed {result.seed}" + (
        f", with the seeded bug {code(result.mutant)}" if result.mutant else ""
    )
    yield ""
    yield f"Again: {code(result.command)}"
    yield ""
    if result.engine_reason:
        yield f"Judged by {text(result.engine)}: {text(result.engine_reason)}"
        yield ""
    if states := load_counts(run_dir):
        yield f"Rare states reached: {len(states.names)} of {len(states.reached)}"
        yield ""
    if run.lacks:
        yield from (f"- lacks: {text(lack)}" for lack in run.lacks)
        yield ""
    if result.faults:
        yield "| fault | on | acted | no progress | recovery |"
        yield "|---|---|---|---|---|"
        for fault in result.faults:
            yield (f"| {text(fault.fault)} | {text(', '.join(fault.targets[:4]))} | "
                   f"{'yes' if fault.acted else 'no'} | {_seconds(fault.unavailable_s)} | "
                   f"{_seconds(fault.recovery_s)} |")  # fmt: skip
        yield ""
    yield "| guarantee | status | opportunities | violations | permitted |"
    yield "|---|---|---|---|---|"
    for g in result.guarantees:
        if g.status is not Status.NOT_JUDGED:
            yield (f"| {g.name} | {g.status} | {g.opportunities:,} | {g.violations:,} | "
                   f"{g.permitted:,} |")  # fmt: skip
    for finding in _violations(result)[:SHOWN]:
        yield ""
        yield f"- **{finding.guarantee}**: {text(finding.sentence)}"


def issue(run_dir: Path) -> str:
    """The text of an issue about a run: violations, command and schedule."""
    return "\n".join(_issue(run_dir)) + "\n"


def _issue(run_dir: Path) -> Iterator[str]:
    result = load_run(run_dir).result
    broken = [g for g in result.guarantees if g.status is Status.VIOLATED]
    names = ", ".join(g.name for g in broken) or str(result.verdict)
    yield f"# {text(result.scenario)} on {text(result.target)}: {names}"
    yield ""
    yield text(sentence(result))
    for g in broken:
        yield ""
        yield f"**{g.name}**: {text(g.promise)} ({text(g.source)})"
        yield ""
        shown = [finding for finding in g.findings if finding.permitted is None][:SHOWN]
        for finding in shown:
            active = ", ".join(finding.faults) or "none"
            yield f"- {text(finding.sentence)} Faults active: {text(active)}."
        if g.violations > len(shown):
            yield f"- and {g.violations - len(shown):,} more"
    yield ""
    yield "## See it again"
    yield ""
    yield _block(result.command, "sh")
    schedule, how = _schedule(run_dir)
    if schedule:
        yield ""
        yield f"{how}; from a file, `--schedule FILE` plays it:"
        yield ""
        yield _block(schedule, "json")
    yield ""
    yield "## What was played"
    yield ""
    for fault in result.faults:
        yield f"- {text(fault.fault)} on {text(', '.join(fault.targets))}: {text(fault.proof)}"
    yield ""
    yield _block("\n".join(f"{k}: {v}" for k, v in result.versions.items()), "")


def _schedule(run_dir: Path) -> tuple[str, str]:
    """The smallest schedule if the run was shrunk, else the played one."""
    smallest = run_dir.resolve().parent / f"shrink-{run_dir.resolve().name}" / "smallest.json"
    for path, how in ((smallest, "The smallest schedule that shows it"),
                      (run_dir / "schedule.json", "The schedule, not shrunk")):  # fmt: skip
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip(), how
        except OSError:
            continue
    return "", ""


def _violations(result: Result) -> list[Finding]:
    return [f for g in result.guarantees for f in g.findings if f.permitted is None]


def text(value: str) -> str:
    """`value` on one line, with Markdown and HTML escaped."""
    flat = " ".join(value.split())
    flat = flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"
    plain = "".join(c for c in flat if c.isprintable())
    return re.sub(r"([\\`*_\[\]<>|#!~@&])", r"\\\1", plain)


def code(value: str | None) -> str:
    """`value` as a code span, whatever backticks it contains."""
    flat = " ".join((value or "").split()).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", flat)), default=0) + 1)
    space = " " if "`" in flat else ""
    return f"{fence}{space}{flat}{space}{fence}"


def _block(value: str, kind: str) -> str:
    fence = "`" * max(3, max(map(len, re.findall("`+", value)), default=0) + 1)
    return f"{fence}{kind}\n{value}\n{fence}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"
