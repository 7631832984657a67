"""`urteil states` over the folders of runs and the ledgers of nights."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.harness.hunt.rows import row
from tests.harness.verify.rare_states.made import Made
from urteil.cli.main import exit_code
from urteil.cli.states import states
from urteil.harness.hunt.ledger import Ledger
from urteil.harness.scenario import save
from urteil.harness.verify.rare_states.counts import FILE, load_counts

ALONE = "isr_of_one_lost_leader"
UNCLEAN = "unclean_election"
LOST = "partition_lost"


def play(folder: Path, *, lost: bool = True) -> Path:
    """A run that reached ALONE and UNCLEAN once, unless its leader stayed."""
    folder.mkdir(parents=True)
    made = Made().led(0, 1, [1]).add("manifest", file="f", rows=0)
    facts = (made.led(5, 2, [2]) if lost else made).write(folder)
    save(folder / "run.json", facts)
    return folder


def printed(out: Path, *arguments: str) -> str:
    done = CliRunner().invoke(states, [*arguments, "--out", str(out)], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.output


def as_json(out: Path, *arguments: str) -> dict[str, dict[str, object]]:
    reach: dict[str, dict[str, object]] = json.loads(printed(out, "--json", *arguments))
    return reach


def test_runs_of_a_folder_add_up(tmp_path: Path) -> None:
    play(tmp_path / "20260101-000000-made-1")
    play(tmp_path / "20260101-000001-made-2", lost=False)
    reach = as_json(tmp_path)
    assert reach[ALONE] == {"counted": 2, "runs": 1, "times": 1, "scenarios": {"made": 1}}
    assert reach[LOST] == {"counted": 0, "runs": 0, "times": 0, "scenarios": {}}
    table = printed(tmp_path)
    assert "| replication | isr_of_one_lost_leader | 1 of 2 | 1     | made      |" in table
    assert " rare states reached in 2 runs. Never reached:" in table
    assert "partition_lost (no run could)" in table


def test_a_run_is_counted_at_first_sight(tmp_path: Path) -> None:
    run = play(tmp_path / "run")
    printed(tmp_path, "run")
    first = load_counts(run)
    assert first is not None
    assert first.reached[ALONE] == 1
    (run / FILE).write_bytes(msgspec.json.encode(msgspec.structs.replace(first, reached={})))
    assert as_json(tmp_path, "run")[ALONE]["counted"] == 0, "counts of these declarations stay"
    (run / FILE).write_bytes(msgspec.json.encode(msgspec.structs.replace(first, declared="old")))
    assert as_json(tmp_path, "run")[ALONE]["runs"] == 1


def test_rows_of_a_ledger_count_without_their_folders(tmp_path: Path) -> None:
    kept = play(tmp_path / "night" / "runs" / "20260101-000000-made-1")
    ledger = Ledger(tmp_path / "night" / "ledger.jsonl")
    pruned = msgspec.structs.replace(row("leader-crash"), states={ALONE: 3, LOST: 0, "gone": 1})
    ledger.add(pruned)
    ledger.add(msgspec.structs.replace(row("made", run=kept), states={ALONE: 1}))
    ledger.add(row("of-an-old-version"))
    reach = as_json(tmp_path)[ALONE]
    assert reach == {"counted": 2, "runs": 2, "times": 4,
                     "scenarios": {"leader-crash": 1, "made": 1}}  # fmt: skip
    assert as_json(tmp_path, "--scenario", "leader-crash")[ALONE]["times"] == 3
    assert as_json(tmp_path, "--last", "1")[ALONE]["counted"] == 1


def test_runs_that_reached_a_state_are_named(tmp_path: Path) -> None:
    play(tmp_path / "20260101-000000-made-1")
    text = printed(tmp_path, "--state", ALONE, "--state", LOST)
    assert "  20260101-000000-made-1  made on urteil, once\n" in text
    assert text.endswith("  reached by no run\n")


def test_run_without_evidence_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    save(tmp_path / "bad" / "run.json", Made().write(tmp_path / "bad"))
    assert exit_code(["states", "--out", str(tmp_path)]) == 0
    why = "bad: its states cannot be counted: its evidence was not collected"
    assert why in capsys.readouterr().err
    assert exit_code(["states", "bad", "--out", str(tmp_path)]) == 254
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--state", "unclean_elections"], "did you mean unclean_election"),
        (["--scenario", "leader-crsh"], "did you mean leader-crash"),
        (["nowhere"], "no run named 'nowhere'"),
        (["--guided"], "add --simulate N"),
        (["run", "--simulate", "3"], "leave out RUN and --runs"),
        ([], "there is no run to count"),
    ],
)
def test_bad_input_names_the_mend(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["states", *arguments, "--out", str(tmp_path)]) == 254
    assert text in " ".join(capsys.readouterr().err.split())
