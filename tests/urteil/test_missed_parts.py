"""Fixtures that missed a part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = "from tests.conftest import pytest_fixture_setup\n"
TESTS = """
import pytest
from urteil.harness.parts.part import MissingPart

answers = iter((False, True))


@pytest.fixture(scope="session")
def part():
    if not next(answers):
        raise MissingPart("debootstrap", "another apt is at work")


@pytest.fixture(scope="session")
def image(part):
    pass


def test_first(image):
    pass


def test_second(image):
    pass
"""


def test_session_fixture_that_missed_a_part_is_set_up_again(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_part.py").write_text(TESTS)
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=240)
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert "MissingPart: debootstrap is missing: another apt is at work" in done.stdout
