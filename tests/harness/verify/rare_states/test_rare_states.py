"""Every rare state over tiny evidence that reaches it once, and over evidence that just misses."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.harness.verify.rare_states.made import Case, Made
from urteil.harness.verify.rare_states import ROOMS, STATES

CASES: dict[str, dict[str, Case]] = {
    room: import_module(f"tests.harness.verify.rare_states.cases.{room}").CASES for room in ROOMS
}


@pytest.mark.parametrize(("room", "name"), [(room, name) for room in CASES for name in CASES[room]])
def test_state_is_reached_once_or_missed(room: str, name: str, tmp_path: Path) -> None:
    reaching, missing = CASES[room][name]
    assert reaching.count(tmp_path / "reaching", name).reached == {name: 1}
    assert missing.count(tmp_path / "missing", name).reached == {name: 0}


def test_every_state_has_a_case() -> None:
    assert {room: [*cases] for room, cases in CASES.items()} == {
        room: [state.name for state in states] for room, states in ROOMS.items()
    }


def test_names_are_unique_and_sentences_complete() -> None:
    assert sum(map(len, ROOMS.values())) == len(STATES)
    assert [s.name for s in STATES.values() if not s.about.endswith(".")] == []


def test_states_of_a_table_without_rows_are_not_counted(tmp_path: Path) -> None:
    counts = Made().led(0, 1, [1]).count(tmp_path, "unclean_election", "commit_without_answer")
    assert counts.reached == {"unclean_election": 0}
    assert counts.not_counted == {"commit_without_answer": "no commits"}


def test_changes_after_the_load_do_not_count(tmp_path: Path) -> None:
    made = Made().led(0, 1, [1]).led(5, 2, [2]).phase("final", 4, 9)
    assert made.count(tmp_path, "unclean_election").reached == {"unclean_election": 0}


def test_a_column_that_old_evidence_lacks_is_null(tmp_path: Path) -> None:
    made = Made().add("polls", poll=1, event="reset")
    made.write(tmp_path)
    drop_column(tmp_path / "evidence" / "polls" / "part-0.parquet", "position_after")
    made.tables.clear()
    counts = made.count(tmp_path, "reader_lost_position", "reader_fell_out_of_log")
    assert counts.reached == {"reader_lost_position": 1, "reader_fell_out_of_log": 0}


def test_an_unreadable_table_is_named(tmp_path: Path) -> None:
    made = Made().add("polls", poll=1, event="reset").add("commits", outcome="info")
    made.write(tmp_path)
    (tmp_path / "evidence" / "polls" / "part-0.parquet").write_bytes(b"no parquet")
    made.tables.clear()
    counts = made.count(tmp_path, "reader_lost_position", "commit_without_answer")
    assert counts.reached == {"commit_without_answer": 1}
    assert counts.not_counted["reader_lost_position"].startswith("polls cannot be read: ")


def drop_column(part: Path, column: str) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(part)
    pq.write_table(table.drop_columns([column]), part)
