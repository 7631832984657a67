"""`python -m tests.room ROOM [pytest's options]`: runs the tests of one room.

A room is a folder of `tests/`, named by its last part (`log`) or by a longer end of its path
(`broker/log`, `tests/broker/log`). `make test ROOM=log` and `tox run -e room -- log` call this
module; tox.ini gives the option `-m` that selects what `make test` runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parent
WRONG_USAGE = 2
SIMULATION = "simulation"
"""This room has a Python and packages of its own."""


class UnknownRoom(Exception):
    """No folder has this name, or several have it. The message lists the candidates."""


def rooms(tests: Path = TESTS) -> list[str]:
    """Every folder with test modules in it or below it, relative to `tests`."""
    folders = {
        folder.relative_to(tests).as_posix()
        for module in tests.rglob("test_*.py")
        for folder in module.parents
        if tests in folder.parents
    }
    return sorted(folders)


def room_named(name: str, known: Sequence[str]) -> str:
    """The room with this name.

    Raises UnknownRoom where no room has the name, or several have it.
    """
    wanted_name = name.strip("/").removeprefix("tests/")
    if wanted_name in known:
        return wanted_name
    rooms = [room for room in known if room.endswith(f"/{wanted_name}")] if wanted_name else []
    if len(rooms) == 1:
        return rooms[0]
    if rooms:
        raise UnknownRoom(f"ROOM={name} names several rooms: {', '.join(rooms)}")
    listing = "".join(f"\n  {room}" for room in known)
    raise UnknownRoom(f"ROOM={name}: there is no such room. The rooms are:{listing}")


def command(room: str, options: Sequence[str]) -> list[str]:
    """The command that runs the tests of a room."""
    if room == SIMULATION:
        return [sys.executable, "-m", "tests.simulation", "-q", *options]
    folder = str(TESTS / room)
    return [sys.executable, "-m", "pytest", folder, "-q", "-n", "2", "--no-loadscope-reorder",
            *options]  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """The exit code of pytest, or 2 where the room's name is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.room", allow_abbrev=False)
    parser.add_argument("-m", dest="marks", default="", help="pytest's option")
    parser.add_argument("room")
    chosen, options = parser.parse_known_args(arguments)
    try:
        room = room_named(chosen.room, rooms())
    except UnknownRoom as error:
        print(error, file=sys.stderr)
        return WRONG_USAGE
    marks = ["-m", chosen.marks] if chosen.marks else []
    return subprocess.call(command(room, [*marks, *options]), cwd=TESTS.parent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
