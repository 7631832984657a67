"""Suites and their scenarios."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from urteil.harness.scenarios import SCENARIOS, SUITES

ROOM = Path(__file__).parents[2] / "suites"
APART = {"mutants", "containers", "courses"}
"""Suites that play scenarios of the others, with mutants or in containers, and labs of courses."""


def test_scenario_belongs_to_the_suites_that_it_declares() -> None:
    assert "unclean-on" in SUITES["elections"]
    assert "unclean-on" not in SUITES["delivery"]


def test_each_declared_suite_has_a_folder_and_each_folder_scenarios() -> None:
    folders = {file.parent.name for file in ROOM.glob("*/test_*.py")}
    assert set(SUITES) == folders - APART


def test_pytest_collects_one_test_for_each_scenario_of_a_suite() -> None:
    listed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            *(str(ROOM / name) for name in SUITES),
        ],
        capture_output=True,
        text=True,
        timeout=240,
    ).stdout
    for suite, names in SUITES.items():
        for name in names:
            assert f"suites/{suite}/test_{suite}.py::test_scenario[{name}]" in listed
    assert listed.count("::test_scenario[") == sum(map(len, SUITES.values()))
    assert SCENARIOS["demo"].suites
