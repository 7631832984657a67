"""Prints a verdict on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from urteil.harness.verify.result import Result

COLOURS = {"PASS": "green", "FAIL": "red", "UNKNOWN": "yellow"}
NOT_JUDGED = "not judged"
REQUESTED = "requested"
"""The reason for an engine that the command line names."""
STATUS_COLOURS = {"violated": "red", "unknown": "yellow", "permitted": "cyan", "holds": "green"}


def print_verdict(run_dir: Path, result: Result) -> None:
    """Print faults with proofs, guarantees with counts, then the verdict."""
    from urteil.harness.verify.rare_states.counts import load_counts

    console = Console(highlight=False)
    if result.faults:
        console.print(_faults(result))
    console.print(_guarantees(result))
    if idle := [g.name for g in result.guarantees if g.status == NOT_JUDGED]:
        note = f"not judged, for lack of an opportunity or of evidence: {', '.join(idle)}"
        console.print(f"[dim]{note}[/]")
    for guarantee in result.guarantees:
        for finding in guarantee.findings[:3]:
            if finding.permitted is None:
                console.print(f"[red]{escape(finding.guarantee)}[/] {escape(finding.sentence)}")
    colour = COLOURS[result.verdict]
    console.print(
        f"[bold {colour}]{result.verdict}[/]  {result.scenario} on {result.target}, "
        f"seed {result.seed}"
    )
    for reason in result.reasons:
        console.print(f"  {escape(reason)}")
    if states := load_counts(run_dir):
        count = f"{len(states.names)} of {len(states.reached)} rare states reached"
        console.print(f"  states: {count} (`urteil states {run_dir.name}`)", soft_wrap=True)
    if result.engine_reason not in ("", REQUESTED):
        console.print(f"  engine: {result.engine} ({escape(result.engine_reason)})", soft_wrap=True)
    console.print(f"  again:  {escape(result.command)}", soft_wrap=True)
    console.print(f"  report: {run_dir / 'report.html'}", soft_wrap=True)


def _faults(result: Result) -> Table:
    table = Table("fault", "on", "acted", "proof", "unavailable", title="Faults")
    for fault in result.faults:
        gap = "" if fault.unavailable_s is None else f"{fault.unavailable_s:.1f} s"
        acted = "yes" if fault.acted else "[red]no[/]"
        table.add_row(fault.fault, ", ".join(fault.targets), acted, escape(fault.proof), gap)
    return table


def _guarantees(result: Result) -> Table:
    table = Table("guarantee", "status", "opportunities", "violations", "permitted")
    for g in (guarantee for guarantee in result.guarantees if guarantee.status != NOT_JUDGED):
        status = f"[{STATUS_COLOURS.get(g.status, 'dim')}]{g.status}[/]"
        table.add_row(
            g.name, status, f"{g.opportunities:,}", f"{g.violations:,}", f"{g.permitted:,}"
        )
    return table
