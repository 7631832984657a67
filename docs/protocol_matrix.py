"""A page from runs: APIs that change state x acts on their requests and answers.

    python -m docs.protocol_matrix RUN...

The command adds the runs to `docs/results/protocol.jsonl`, one line each, and renders
`docs/results/protocol.md` from all lines, so that the table grows over days. A cell has the verdict
of the runs in which the act hit a frame of the API. A fault that did not act counts for nothing:
its run is UNKNOWN by itself.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from docs.reference_pages import markdown
from urteil.chaos.node_selectors import LINK_ENDS
from urteil.harness.scenarios.protocol_apis import ACTS, KILLS, STATE_CHANGES
from urteil.harness.schedule import Entry, Schedule
from urteil.harness.verify.result import Result, Verdict, load_result

PLAYS = Path(__file__).parent / "results" / "protocol.jsonl"
PAGE = PLAYS.with_suffix(".md")
Cell = tuple[str, str]
"""API and act."""
SHOWN = (Verdict.FAIL, Verdict.PASS, Verdict.UNKNOWN)
"""A cell shows the first of these that a run had: UNKNOWN says nothing against another run."""
ABOUT = (
    "Every API that changes state, and what happened to one of its requests or answers. A cell has "
    "the verdict of the runs in which the act hit such a frame; `-` is not played, `none` cannot "
    "be played. [Faults of the protocol](../guide/faults.md) act. `python -m docs.protocol_matrix "
    "RUN...` adds runs."
)
UNPLAYABLE = "Kills that cannot be played: " + "; ".join(
    f"{change.api}, since {change.no_kills}" for change in STATE_CHANGES.values() if change.no_kills
)


class Play(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A judged run, as it counts in the table. `run` is its id, `date` that of the verdict. The
    first day's seeds are not known. `cause` says why the verdict is not PASS; people write it into
    the file."""

    run: str
    date: str
    target: str
    scenario: str
    seed: int | None
    verdict: Verdict
    cells: tuple[Cell, ...]
    cause: str = ""


def cell_of(entry: Entry) -> Cell | None:
    """The cell in which a played fault counts; None for another fault, or one that did not act.

    A crash of an end of a link acts only if its frame came."""
    played = entry.played
    if played is None or not played.acted:
        return None
    event = (entry.after_event or "").split(":")
    if entry.fault == "crash" and entry.target in LINK_ENDS:
        return event[1], f"kill {event[2]}"
    cell = (str(entry.options.get("api", "")), entry.fault)
    return cell if cell[0] in STATE_CHANGES and cell[1] in ACTS else None


def read_play(run_dir: Path) -> Play | None:
    """The play of a run; None for a run of a mutant, and for one that was not judged."""
    result_file = run_dir / "result.json"
    if not result_file.exists():
        return None
    result = load_result(run_dir)
    if result.mutant is not None:
        return None
    schedule = msgspec.json.decode((run_dir / "schedule.json").read_bytes(), type=Schedule)
    judged = datetime.fromtimestamp(result_file.stat().st_mtime, UTC)
    return Play(
        run=result.run,
        date=f"{judged:%Y-%m-%d}",
        target=_target_with_release(result),
        scenario=result.scenario,
        seed=result.seed,
        verdict=result.verdict,
        cells=tuple(sorted({cell for entry in schedule.faults if (cell := cell_of(entry))})),
    )


def _target_with_release(result: Result) -> str:
    """The target; `kafka` is the default release."""
    release = result.versions.get("kafka")
    return f"kafka:{release}" if result.target == "kafka" and release else result.target


def _cell_text(cell: Cell, verdicts: list[Verdict]) -> str:
    shown = next((verdict for verdict in SHOWN if verdict in verdicts), None)
    if shown is None:
        return "none" if STATE_CHANGES[cell[0]].no_kills and cell[1] in KILLS else "-"
    count = verdicts.count(shown)
    return str(shown) if len(verdicts) == 1 else f"{shown} {count} of {len(verdicts)}"


def _seed_text(play: Play) -> str:
    return "-" if play.seed is None else str(play.seed)


def _table(cells: Mapping[Cell, list[Verdict]]) -> str:
    """The Markdown table of one target."""
    return markdown.table(
        ["API", *ACTS.values()],
        (
            [api, *(_cell_text((api, act), cells.get((api, act), [])) for act in ACTS)]
            for api in STATE_CHANGES
        ),
    )


def _section(target: str, plays: list[Play]) -> str:
    """The table of one target, and the plays from which it was made."""
    cells: dict[Cell, list[Verdict]] = defaultdict(list)
    for play in plays:
        for cell in play.cells:
            cells[cell].append(play.verdict)
    acts = sum(map(len, cells.values()))
    runs = markdown.table(
        ["date", "scenario", "seed", "verdict", "acts", "cause"],
        (
            [
                play.date,
                play.scenario,
                _seed_text(play),
                str(play.verdict),
                str(len(play.cells)),
                play.cause,
            ]
            for play in sorted(plays, key=lambda play: (play.date, play.scenario, play.run))
        ),
    )
    counted = f"{acts} acts in {len(cells)} cells, of these runs:"
    return "\n\n".join([f"## {target}", _table(cells), counted, runs])


def page(plays: Iterable[Play]) -> str:
    by_target: dict[str, list[Play]] = defaultdict(list)
    for play in plays:
        by_target[play.target].append(play)
    sections = (_section(target, by_target[target]) for target in sorted(by_target, reverse=True))
    return markdown.page("Requests and answers of all APIs", ABOUT, f"{UNPLAYABLE}.", *sections)


def add_runs(run_dirs: Iterable[Path], known: Iterable[Play]) -> list[Play]:
    """The known plays and those of the runs, each run once. A known cause stays."""
    plays = {play.run: play for play in known}
    for play in filter(None, map(read_play, run_dirs)):
        cause = plays[play.run].cause if play.run in plays else ""
        plays[play.run] = msgspec.structs.replace(play, cause=cause)
    return list(plays.values())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m docs.protocol_matrix RUN...")
    lines = PLAYS.read_bytes().splitlines()
    known = [msgspec.json.decode(line, type=Play) for line in lines]
    plays = add_runs(map(Path, sys.argv[1:]), known)
    PLAYS.write_bytes(b"".join(msgspec.json.encode(play) + b"\n" for play in plays))
    PAGE.write_text(page(plays))
