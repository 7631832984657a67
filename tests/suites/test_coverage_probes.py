"""Probes mark the lines that Python executes, and the marks survive SIGKILL."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from urteil.suites.coverage.collection import collect, source_files
from urteil.suites.coverage.line_files import digest_of, marks_path, set_folder
from urteil.suites.coverage.probes import executable_lines, lines_run, with_probes
from urteil.suites.source_hook import BROKER, install

SAMPLE = '''
"""A module with every statement that can end a block."""
from __future__ import annotations
import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nowhere import Nothing

class Odd(Exception):
    """No statement."""
    kind = (
        "odd"
    )

@contextmanager
def opened():
    yield 1
    name = "closed"

def choose(n):
    if n == 0:
        return "none"
    elif n == 1:
        found = "one"
    else:
        found = "many"
    while n:
        n -= 1
        if n == 3:
            break
    else:
        found += "!"
    return found

def guarded(n):
    try:
        if n:
            raise Odd
        quiet = True
    except Odd:
        quiet = False
    except ValueError:
        quiet = None
    else:
        quiet = True
    finally:
        n = 0
    with opened() as one:
        n += one
    match n:
        case 1:
            return quiet
        case _:
            return None

async def waits(event):
    before = 1
    await event.wait()
    return before

async def main():
    event = asyncio.Event()
    task = asyncio.create_task(waits(event))
    await asyncio.sleep(0)
    task.cancel()

choose(2)
guarded(1)
asyncio.run(main())
'''


NOT_IN_BLOCKS = ('"""', "from __future__", "except", "case", "finally")
"""Docstrings, and the tests of handlers and cases whose bodies do not run."""


def executed(code: Any, names: dict[str, Any]) -> set[int]:
    """The lines that Python's own tracing reports."""
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != "sample":
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(code, names)
    finally:
        sys.settrace(before)
    return lines


def test_marked_lines_are_those_that_python_executes(tmp_path: Path) -> None:
    set_folder(tmp_path)
    traced = executed(compile(SAMPLE, "sample", "exec", dont_inherit=True), {"__name__": "sample"})
    tree = with_probes(SAMPLE, "broker/sample.py", digest_of(SAMPLE))
    exec(compile(tree, "sample", "exec", dont_inherit=True), {"__name__": "sample"})
    marks = marks_path(tmp_path, "broker/sample.py", digest_of(SAMPLE)).read_bytes()
    texts = SAMPLE.splitlines()
    run = lines_run(SAMPLE, marks)
    missed = [texts[n - 1] for n in sorted(traced - run)]
    assert all(text.strip().startswith(NOT_IN_BLOCKS) for text in missed), missed
    never = [texts[n - 1].strip() for n in executable_lines(SAMPLE) if n not in run]
    assert never == [
        'return "none"', 'found = "one"', "break", "quiet = True", "except ValueError:",
        "quiet = None", "quiet = True", "case _:", "return None", "return before",
    ]  # fmt: skip
    assert "from nowhere import Nothing" not in [texts[n - 1].strip() for n in traced | run]


def test_statement_after_an_await_is_marked_only_after_its_return(tmp_path: Path) -> None:
    """The sample's task is cancelled while it waits."""
    set_folder(tmp_path)
    tree = with_probes(SAMPLE, "broker/sample.py", "v")
    exec(compile(tree, "sample", "exec", dont_inherit=True), {"__name__": "sample"})
    run = lines_run(SAMPLE, marks_path(tmp_path, "broker/sample.py", "v").read_bytes())
    texts = SAMPLE.splitlines()
    assert texts.index("    await event.wait()") + 1 in run
    assert texts.index("    return before") + 1 not in run


KILLED = """
import os, signal, sys
from pathlib import Path
from urteil.suites.coverage.compilation import compile_with_probes
from urteil.suites.coverage.line_files import set_folder
from urteil.suites.source_hook import install
set_folder(Path(sys.argv[1]))
install(compile_with_probes)
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.group import Group
Group("g", initial_delay_ms=0, max_size=1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_marks_of_a_killed_process_are_complete(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=120)
    assert killed.returncode == -signal.SIGKILL
    _, lines = collect(tmp_path)["broker/groups/group.py"]
    texts = (BROKER / "groups" / "group.py").read_text().splitlines()
    assert texts.index("        self.group_id = group_id") + 1 in lines
    assert not any("self.state = state" in texts[n - 1] for n in lines)


def test_another_version_of_a_file_is_not_collected(tmp_path: Path) -> None:
    set_folder(tmp_path)
    marks_path(tmp_path, "broker/groups/group.py", "0" * 8).write_bytes(b"\1" * 2000)
    assert collect(tmp_path) == {}


def test_an_imported_broker_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "urteil.broker", sys)
    with pytest.raises(RuntimeError, match="imported already"):
        install(lambda _: None)


@pytest.mark.thorough
def test_every_module_of_the_broker_compiles_with_probes() -> None:
    for source in source_files():
        tree = with_probes(source.text, source.name, source.digest)
        compile(tree, source.name, "exec", dont_inherit=True)
