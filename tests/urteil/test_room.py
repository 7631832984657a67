"""`make test ROOM=...` finds the room by its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.room import TESTS, UnknownRoom, command, main, room_named, rooms

KNOWN = ["broker", "broker/log", "broker/log/cleaner", "harness/log", "chaos"]


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("cleaner", "broker/log/cleaner"),
        ("log/cleaner", "broker/log/cleaner"),
        ("broker/log", "broker/log"),
        ("tests/broker/log/", "broker/log"),
        ("chaos", "chaos"),
    ],
)
def test_room_is_found_by_the_end_of_its_path(name: str, room: str) -> None:
    assert room_named(name, KNOWN) == room


@pytest.mark.parametrize("name", ["lgo", "", "og", "../chaos", "broker/cleaner"])
def test_unknown_room_lists_all_rooms(name: str) -> None:
    with pytest.raises(UnknownRoom, match="no such room") as raised:
        room_named(name, KNOWN)
    assert all(f"\n  {room}" in str(raised.value) for room in KNOWN)


def test_ambiguous_room_lists_both() -> None:
    with pytest.raises(UnknownRoom, match="several rooms: broker/log, harness/log"):
        room_named("log", KNOWN)


def test_path_of_a_test_module_names_its_room() -> None:
    known = rooms()
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert folders <= set(known)
    assert [room_named(room, known) for room in known] == known


def test_further_options_are_passed_to_pytest() -> None:
    """The later -m replaces the earlier one, which tox.ini gives."""
    arguments = ["-m", "not thorough", "suites", "-m", "thorough", "-k", "nothing_has_this_name"]
    assert main(arguments) == pytest.ExitCode.NO_TESTS_COLLECTED
    assert command("simulation", ["-k", "seeds"])[1:] == ["-m", "tests.simulation", "-q", "-k",
                                                          "seeds"]  # fmt: skip


def test_unknown_room_exits_2_and_runs_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.room", "-m", "not thorough", "lgo"],
        cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "ROOM=lgo: there is no such room" in ended.stderr
