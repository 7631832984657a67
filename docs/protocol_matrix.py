"""A page from runs: APIs that change state x acts on their requests and answers.

    python -m docs.protocol_matrix RUN... > docs/results/protocol.md

A cell has the verdict of the runs in which the act hit a frame of the API. A fault that did not act
counts for nothing: its run is UNKNOWN by itself.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from docs.reference_pages import markdown
from urteil.harness.scenarios.protocol_apis import ACTS, STATE_CHANGES
from urteil.harness.schedule import Entry, Schedule
from urteil.harness.verify.result import Verdict, load_result

Cell = tuple[str, str]
"""API and act."""
SHOWN = (Verdict.FAIL, Verdict.PASS, Verdict.UNKNOWN)
"""A cell shows the first of these that a run had: UNKNOWN says nothing against another run."""
ABOUT = (
    "Every API that changes state, and what happened to one of its requests or answers. A cell has "
    "the verdict of the runs in which the act hit such a frame; `-` is not played. [Faults of the "
    "protocol](../guide/faults.md) act. `python -m docs.protocol_matrix RUN...` renders the page."
)


def cell_of(entry: Entry) -> Cell | None:
    """The cell in which a played fault counts; None for another fault, or one that did not act."""
    played = entry.played
    if played is None or not played.acted:
        return None
    event = (entry.after_event or "").split(":")
    if entry.fault == "crash" and event[0] == "link":
        awaited_s = played.begin_s - (entry.at_s or 0.0)
        came = entry.within_s is None or awaited_s < entry.within_s
        return (event[1], f"kill {event[2]}") if came else None
    cell = (str(entry.options.get("api", "")), entry.fault)
    return cell if cell[0] in STATE_CHANGES and cell[1] in ACTS else None


def verdicts_of(run_dirs: Iterable[Path]) -> dict[str, dict[Cell, list[Verdict]]]:
    """By target and cell, the verdicts of the runs. Runs of mutants and runs that were not judged
    are left out."""
    verdicts: dict[str, dict[Cell, list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for run_dir in run_dirs:
        if not (run_dir / "result.json").exists():
            continue
        result = load_result(run_dir)
        if result.mutant is not None:
            continue
        schedule = msgspec.json.decode((run_dir / "schedule.json").read_bytes(), type=Schedule)
        for cell in {cell for entry in schedule.faults if (cell := cell_of(entry))}:
            verdicts[result.target][cell].append(result.verdict)
    return verdicts


def _cell_text(verdicts: list[Verdict]) -> str:
    shown = next((one for one in SHOWN if one in verdicts), None)
    if shown is None:
        return "-"
    count = verdicts.count(shown)
    return str(shown) if len(verdicts) == 1 else f"{shown} {count} of {len(verdicts)}"


def _table(cells: Mapping[Cell, list[Verdict]]) -> str:
    """The Markdown table of one target."""
    return markdown.table(
        ["API", *ACTS.values()],
        ([api, *(_cell_text(cells.get((api, act), [])) for act in ACTS)] for api in STATE_CHANGES),
    )


def page(run_dirs: Iterable[Path]) -> str:
    sections = []
    for target, cells in sorted(verdicts_of(run_dirs).items(), reverse=True):
        played = sum(map(len, cells.values()))
        sections.append(f"## {target}\n\n{_table(cells)}\n\n{played} acts in {len(cells)} cells.")
    return markdown.page("Requests and answers of all APIs", ABOUT, *sections)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m docs.protocol_matrix RUN...")
    sys.stdout.write(page(map(Path, sys.argv[1:])))
