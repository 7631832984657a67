"""Drawn bugs: operators do what they say, the same seed draws the same bugs, and a broker with one
runs its line."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from cosmic_ray.mutating import MutationVisitor

from urteil.cli.main import exit_code
from urteil.suites.drawn_bugs import drawing, slips
from urteil.suites.drawn_bugs.bug import DrawnBug, StaleBug, load_bug, make_bug
from urteil.suites.source_hook import BROKER

FILE = "broker/groups/group_state.py"
EXAMPLES = [
    (operator, example)
    for operator in (*slips.OWN, slips.WrongField)
    for example in operator.examples()
]


@pytest.mark.parametrize(("operator", "example"), EXAMPLES)
def test_operator_makes_its_examples(operator: Any, example: Any) -> None:
    made = operator(**example.operator_args)
    changed = MutationVisitor.mutate_code(example.pre_mutation_code, made, example.occurrence)
    assert changed == example.post_mutation_code


@pytest.mark.parametrize(
    ("operator", "source"),
    [
        (slips.StatementLeftOut, "def f(x):\n    log.info('lost')\n"),
        (slips.StatementLeftOut, "def f(x):\n    y = x\n"),
        (slips.StatementLeftOut, 'def f(x):\n    "text"\n'),
        (slips.StateNotReset, "def f(x):\n    x.kept = 5\n"),
        (slips.ErrorToSuccess, "if x == ErrorCode.NOT_LEADER: pass"),
        (slips.ErrorToSuccess, "return ErrorCode.NONE"),
        (slips.GuardLeftOut, "if a:\n    return\nelse:\n    b()\n"),
        (slips.OrderSwapped, "def f(x):\n    y = 1\n    x.go()\n"),
    ],
)
def test_operator_leaves_other_code(operator: Any, source: str) -> None:
    assert MutationVisitor.mutate_code(source, operator(), 0) is None


def test_fields_of_one_type_are_siblings() -> None:
    source = "class A:\n    start: int\n    end: int\n    name: str\n    size: int\n"
    source += "class B:\n    size: int\n    start: int\n    end: int\n"
    assert slips.fields_of_one_type([source]) == {
        "start": ("end",),
        "end": ("start",),
    }


@pytest.fixture(scope="module")
def drawn() -> list[DrawnBug]:
    return list(itertools.islice(drawing.draw(7, ("quotas",)), 8))


def test_the_same_seed_draws_the_same_bugs(drawn: list[DrawnBug]) -> None:
    again = list(itertools.islice(drawing.draw(7, ("quotas",)), 8))
    assert again == drawn
    assert len({bug.name for bug in drawn}) == 8
    other = list(itertools.islice(drawing.draw(8, ("quotas",)), 8))
    assert {bug.name for bug in other} != {bug.name for bug in drawn}


def test_rooms_take_turns(monkeypatch: pytest.MonkeyPatch, drawn: list[DrawnBug]) -> None:
    monkeypatch.setattr(drawing, "_draw_in_room", lambda room, _: iter(drawn))
    turns = [bug.name for bug in itertools.islice(drawing.draw(7, ("log", "api")), 4)]
    assert turns == [bug.name for bug in drawn[:4]]


def test_drawn_bugs_change_one_place_of_a_function(drawn: list[DrawnBug]) -> None:
    for bug in drawn:
        source = (BROKER.parent / bug.file).read_text()
        changed = bug.change(source)
        assert changed != source
        compile(changed, bug.file, "exec", dont_inherit=True)
        assert bug.function
        assert bug.diff.count("\n@@") == 1 or bug.diff.startswith("---"), bug.diff


def small_bug() -> DrawnBug:
    source = (BROKER.parent / FILE).read_text()
    changed = source.replace("EMPTY", "Empty", 1)
    return make_bug(
        room="groups", slip="s", file=FILE, function="f", source=source, changed=changed
    )


def test_bug_survives_its_file(tmp_path: Path) -> None:
    bug = small_bug()
    bug.save(tmp_path / "bug.json")
    assert load_bug(tmp_path / "bug.json") == bug


def test_changed_source_makes_a_bug_stale() -> None:
    with pytest.raises(StaleBug, match="draw again"):
        small_bug().change((BROKER.parent / FILE).read_text() + "\n")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1}'])
def test_damaged_bug_file_is_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "bug.json").write_text(text)
    with pytest.raises(ValueError, match="is not a drawn bug"):
        load_bug(tmp_path / "bug.json")


RUN = """
import sys
from pathlib import Path
from urteil.suites.drawn_bugs.bug import load_bug
from urteil.suites.drawn_bugs.changed_module import import_with_bug
import_with_bug(load_bug(Path(sys.argv[1])), lambda: print("hit"))
from urteil.broker.groups.group import Group
print("imported")
group = Group("g", initial_delay_ms=0, max_size=1)
print("made")
print(group.pop_emptied(), group.pop_emptied())
"""


def test_bug_acts_and_its_line_is_reported_once(tmp_path: Path) -> None:
    path = BROKER / "groups" / "group.py"
    source = path.read_text()
    line = "emptied, self._is_emptied = self._is_emptied, False"
    assert source.count(line) == 1
    changed = source.replace(line, "emptied, self._is_emptied = True, False")
    bug = make_bug(
        room="groups",
        slip="s",
        file="broker/groups/group.py",
        function="Group.pop_emptied",
        source=source,
        changed=changed,
    )
    bug.save(tmp_path / "bug.json")
    command = [sys.executable, "-c", RUN, str(tmp_path / "bug.json")]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert output.split() == ["imported", "made", "hit", "True", "True"]
    assert json.loads((tmp_path / "bug.json").read_text())["line"] == bug.line


def test_run_rejects_a_bug_of_other_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bug = small_bug()
    path = tmp_path / "bug.json"
    path.write_text(json.dumps(asdict(bug) | {"digest": "0" * 8}))
    assert exit_code(["run", "demo", "--mutant", str(path), "--out", str(tmp_path)]) == 254
    assert "draw again" in capsys.readouterr().err
    assert exit_code(["run", "demo", "--mutant", "nowhere.json", "--out", str(tmp_path)]) == 254
    assert "is not a drawn bug" in capsys.readouterr().err
