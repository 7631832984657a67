"""The table of lines and scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from urteil.cli.coverage import coverage
from urteil.cli.main import exit_code
from urteil.harness.hunt.coverage import CoverageTable, line_ranges
from urteil.suites.coverage.collection import source_file
from urteil.suites.source_hook import BROKER

FILE = "broker/groups/group.py"


def test_runs_of_a_scenario_add_up(tmp_path: Path) -> None:
    table = CoverageTable(tmp_path / "coverage.db")
    table.add("crash", {FILE: ("v1", [1, 2])})
    table.add("crash", {FILE: ("v1", [2, 3])})
    table.add("calm", {FILE: ("v1", [3])})
    assert table.scenarios_by_line(FILE, "v1") == {1: ["crash"], 2: ["crash"], 3: ["calm", "crash"]}
    assert table.scenarios() == ["calm", "crash"]


def test_a_changed_file_begins_anew(tmp_path: Path) -> None:
    table = CoverageTable(tmp_path / "coverage.db")
    table.add("crash", {FILE: ("v1", [1, 2])})
    table.add("calm", {FILE: ("v1", [1])})
    table.add("crash", {FILE: ("v2", [5])})
    assert table.scenarios_by_line(FILE, "v2") == {5: ["crash"]}
    assert table.scenarios_by_line(FILE, "v1") == {1: ["calm"]}


def test_ranges() -> None:
    assert line_ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
    assert line_ranges([]) == ""


def filled(tmp_path: Path) -> list[int]:
    """A table in which `crash` executes all lines of FILE but the last two. Returns those."""
    source = source_file(BROKER / "groups" / "group.py")
    table = CoverageTable(tmp_path / "coverage.db")
    table.add("crash", {FILE: (source.digest, source.executable[:-2])})
    return source.executable[-2:]


def printed(tmp_path: Path, *arguments: str) -> str:
    done = CliRunner().invoke(coverage, [*arguments, "--out", str(tmp_path)], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.output


def test_missing_lines_are_printed_as_ranges(tmp_path: Path) -> None:
    last = filled(tmp_path)
    assert printed(tmp_path, FILE, "--missing") == f"{FILE}: {line_ranges(last)}\n"


def test_listing_names_the_scenarios(tmp_path: Path) -> None:
    last = filled(tmp_path)
    lines = printed(tmp_path, FILE).splitlines()[1:]
    assert lines[last[0] - 1].split()[1] == "none"
    assert sum("# crash" in line for line in lines) == 1
    assert len(lines) == len((BROKER / "groups" / "group.py").read_text().splitlines())


def test_summary_counts_folders(tmp_path: Path) -> None:
    filled(tmp_path)
    rows = [row.split("|") for row in printed(tmp_path).splitlines() if row.startswith("| broker")]
    counts = {row[1].strip(): row for row in rows}
    assert int(counts["broker/groups"][3]) > 100
    assert int(counts["broker/log"][3]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["coverage", "broker/nowhere.py"], "no source file of the broker"),
        (["coverage", "../etc"], "no source file of the broker"),
        (["coverage", "harness/scenario.py"], "no source file of the broker"),
        (["coverage"], "is empty"),
        (["run", "demo", "--coverage", "--mutant", "elect_any_replica"], "without --mutant"),
        (["run", "demo", "--coverage", "--target", "kafka"], "not --target kafka"),
        (["run", "demo", "--coverage", "--runtime", "docker"], "leave out --runtime docker"),
    ],
)
def test_bad_input_is_rejected(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*arguments, "--out", str(tmp_path)]) == 254
    assert message in " ".join(capsys.readouterr().err.split())
