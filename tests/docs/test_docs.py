"""The pages build without warnings; commands, files and links in them exist."""

from __future__ import annotations

import configparser
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.named import PAGES, ROOT, SITE, anchors, blocks, calls, links, spans, wrong_call

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))


def build(source: Path, out: Path, builder: str = "dummy") -> subprocess.CompletedProcess[str]:
    """As `tox run -e docs` does, with the builder `html`; `dummy` checks all and writes no page."""
    argv = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder]
    return subprocess.run(
        [*argv, "-d", str(out / "trees"), str(source), str(out / builder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_pages_have_no_warnings(tmp_path: Path) -> None:
    built = build(ROOT / "docs", tmp_path)
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.thorough
def test_every_page_is_built(tmp_path: Path) -> None:
    built = build(ROOT / "docs", tmp_path, "html")
    assert (built.returncode, built.stderr) == (0, "")
    pages = {path.stem for path in (tmp_path / "html").rglob("*.html")}
    assert {page.stem for page in SITE} <= pages


def test_unlisted_page_and_dead_link_are_warnings(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text((ROOT / "docs" / "conf.py").read_text())
    (tmp_path / "index.md").write_text("# Here\n\n[there](nowhere.md)\n")
    (tmp_path / "alone.md").write_text("# Alone\n")
    built = build(tmp_path, tmp_path / "out")
    assert built.returncode == 1
    assert "nowhere.md" in built.stderr
    assert "alone.md" in built.stderr


@each_page
def test_commands_in_pages_are_valid(page: Path) -> None:
    in_blocks = {call: wrong_call(call) for call in calls(blocks(page), "urteil")}
    named = {call: wrong_call(call, is_complete=False) for call in calls(spans(page), "urteil")}
    assert {call: why for call, why in (in_blocks | named).items() if why} == {}


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("run demo --sed 1", "No such option"),
        ("rum demo", "no command rum"),
        ("run SCENARIO [--sed N]", "no option --sed"),
        ("run demo --engine flink", "'auto', 'duckdb', 'spark'"),
        ("cluster around", "no command around"),
        ("tool kafka-topic --list", "no tool kafka-topic"),
        ("night --hours eight", "is not a valid float"),
    ],
)
def test_invalid_command_is_detected(call: str, why: str) -> None:
    assert why in wrong_call(call)


@pytest.mark.parametrize(
    "call",
    [
        "run demo --seed 7",
        "shrink RUN [--hits 2]",
        "cluster up|status|down",
        "tool kafka-topics --list",
    ],
)
def test_valid_command_is_accepted(call: str) -> None:
    assert wrong_call(call) == ""


@each_page
def test_links_in_pages_have_targets(page: Path) -> None:
    dead = [str(path) for path, _ in links(page) if not path.exists()]
    dead += [f"{path}#{anchor}" for path, anchor in links(page)
             if anchor and path.exists() and anchor not in anchors(path)]  # fmt: skip
    assert dead == []


def _module(call: str) -> bool:
    return importlib.util.find_spec(re.split(r"[\s;]", call)[0]) is not None


def _path(call: str) -> bool:
    words = [word.partition("::")[0] for word in call.split() if "/" in word]
    return all((ROOT / word).exists() for word in words if not word.startswith(("-", "<", "/")))


def _target(call: str) -> bool:
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return re.split(r"[\s;,]", call)[0] in targets


def _environment(call: str) -> bool:
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    names = re.findall(r"-e (\S+)", call)
    return all(f"testenv:{name}" in tox for environment in names for name in environment.split(","))


@each_page
@pytest.mark.parametrize(
    ("program", "there"),
    [
        ("python -m", _module),
        ("python", _path),
        ("pytest", _path),
        ("make", _target),
        ("tox", _environment),
    ],
)
def test_programs_in_pages_exist(page: Path, program: str, there: Callable[[str], bool]) -> None:
    named = [*calls(blocks(page), program), *calls(spans(page), program)]
    assert [call for call in named if not call.startswith("-m ") and not there(call)] == []


@each_page
def test_files_named_in_pages_exist(page: Path) -> None:
    rooms = "broker|chaos|compose|harness|reports|suites|tests|bench|docs"
    shape = re.compile(rf"(?:{rooms})/[\w./-]+")
    named = {match for text in (*blocks(page), *spans(page)) if (match := shape.fullmatch(text))}
    entries = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in SITE}
    gone = [row[0] for row in named if row[0] not in entries and not (ROOT / row[0]).exists()]
    assert [path for path in gone if "/." not in path] == []


def test_code_shown_in_writing_is_that_of_the_lab() -> None:
    modules = [
        path for room in ("harness", "chaos", "suites") for path in (ROOT / room).rglob("*.py")
    ]
    lab = [" ".join(path.read_text().split()) for path in modules]
    page = (ROOT / "docs/guide/writing.md").read_text()
    shown = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(shown) == 5
    gone = [code for code in shown if not any(" ".join(code.split()) in text for text in lab)]
    assert gone == []
