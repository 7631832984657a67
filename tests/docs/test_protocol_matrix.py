"""The page of APIs x acts, from the schedules and verdicts of runs."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import msgspec

from docs.protocol_matrix import PAGE, PLAYS, Play, add_runs, cell_of, page
from urteil.harness.scenarios import (
    lost_messages,
    protocol,
    protocol_kills,
    protocol_matrix,
    scenarios_of,
)
from urteil.harness.scenarios.protocol_apis import ACTS, KILLS, STATE_CHANGES
from urteil.harness.schedule import Entry, Played, Schedule, settle_schedule
from urteil.harness.verify.result import Result, Verdict

PLAYED = Played(begin_s=5.0, healed_s=8.0, targets=["client->b1"], acted=True)
LOST = Entry(fault="lose_answer", at_s=5, options={"api": "EndTxn"}, played=PLAYED)
KILLED = Entry(
    fault="crash", target="receiver", at_s=4, within_s=4, after_event="link:EndTxn:answer:1",
    played=PLAYED,
)  # fmt: skip


def write_run(folder: Path, verdict: Verdict, *entries: Entry, mutant: str | None = None) -> Path:
    folder.mkdir()
    result = Result(
        verdict=verdict, reasons=[], seed=1, scenario="s", target="urteil", runtime="process",
        mutant=mutant, command="", run=folder.name, engine="duckdb", versions={}, seconds={},
        counts={}, guarantees=[], faults=[],
    )  # fmt: skip
    (folder / "result.json").write_bytes(msgspec.json.encode(result))
    (folder / "schedule.json").write_bytes(msgspec.json.encode(Schedule(faults=entries)))
    return folder


def test_cell_shows_a_failure_before_a_pass_before_an_unknown(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", Verdict.PASS, LOST, KILLED),
        write_run(tmp_path / "b", Verdict.FAIL, LOST),
        write_run(tmp_path / "c", Verdict.FAIL, KILLED, mutant="m"),
        write_run(tmp_path / "d", Verdict.UNKNOWN, KILLED),
        tmp_path,
    ]
    (row,) = (
        line for line in page(add_runs(runs, ())).splitlines() if line.startswith("| EndTxn |")
    )
    assert row == "| EndTxn | - | FAIL 1 of 2 | - | - | - | PASS 1 of 2 |"


def test_run_counts_once(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", Verdict.PASS, LOST)
    once = add_runs([run], ())
    assert add_runs([run], once) == once
    assert [(play.scenario, play.verdict, play.cells) for play in once] == [
        ("s", Verdict.PASS, (("EndTxn", "lose_answer"),))
    ]


def test_page_is_that_of_its_plays() -> None:
    plays = [msgspec.json.decode(line, type=Play) for line in PLAYS.read_bytes().splitlines()]
    assert PAGE.read_text() == page(plays)


def test_fault_that_did_not_act_is_in_no_cell() -> None:
    assert cell_of(msgspec.structs.replace(LOST, played=None)) is None
    idle = msgspec.structs.replace(PLAYED, acted=False)
    assert cell_of(msgspec.structs.replace(LOST, played=idle)) is None
    assert cell_of(msgspec.structs.replace(KILLED, played=idle)) is None, "the frame never came"
    assert cell_of(msgspec.structs.replace(KILLED, target="leader")) is None, "it needs no frame"


def test_kill_that_came_late_is_in_its_cell() -> None:
    """It waits for its frame from the healing of the fault before it on."""
    late = msgspec.structs.replace(PLAYED, begin_s=80.0)
    cell = cell_of(msgspec.structs.replace(KILLED, played=late))
    assert cell == ("EndTxn", "kill answer")


def test_scenarios_act_on_every_api_that_changes_state() -> None:
    cells = set()
    modules = protocol, protocol_kills, protocol_matrix, lost_messages
    for scenario in chain.from_iterable(map(scenarios_of, modules)):
        for spec in settle_schedule(msgspec.structs.replace(scenario, seed=1)).faults:
            played = msgspec.structs.replace(PLAYED, begin_s=spec.at_s or 0.0)
            fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
            cells.add(cell_of(Entry(**fields, played=played)))
    missing = {(api, act) for api in STATE_CHANGES for act in ACTS} - cells
    unplayable = {api for api, change in STATE_CHANGES.items() if change.no_kills}
    assert missing == {(api, act) for api in unplayable for act in KILLS}


def test_kill_that_cannot_be_played_is_shown_with_its_reason(tmp_path: Path) -> None:
    text = page(add_runs([write_run(tmp_path / "a", Verdict.PASS, LOST)], ()))
    assert "| ControlledShutdown | - | - | - | - | none | none |" in text
    assert STATE_CHANGES["ControlledShutdown"].no_kills in text


def test_default_release_is_in_the_table_of_its_release(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", Verdict.PASS, LOST)
    file = run / "result.json"
    result = msgspec.json.decode(file.read_bytes(), type=Result)
    by_default = msgspec.structs.replace(result, target="kafka", versions={"kafka": "3.9.1"})
    file.write_bytes(msgspec.json.encode(by_default))
    assert [play.target for play in add_runs([run], ())] == ["kafka:3.9.1"]


def test_run_added_again_keeps_the_cause_of_its_verdict(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", Verdict.FAIL, LOST)
    (play,) = add_runs([run], ())
    explained = msgspec.structs.replace(play, cause="a bug of the client")
    assert add_runs([run], [explained]) == [explained]
    assert "| s | 1 | FAIL | 1 | a bug of the client |" in page([explained])
