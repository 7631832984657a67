"""Parts that tests miss or wait for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = "from tests.conftest import pytest_configure\n"
TESTS = """
import subprocess
import sys

import pytest
from urteil.harness.dependencies import apt
from urteil.harness.dependencies.installation import MissingDependency

answers = iter((False, True))
HOLDER = '''
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
input("held")
'''


@pytest.fixture(scope="session")
def part():
    if not next(answers):
        raise MissingDependency("debootstrap", "another apt is at work")


@pytest.fixture(scope="session")
def image(part):
    pass


def test_first(image):
    pass


def test_second(image):
    pass


def test_wait_for_another_apt(tmp_path):
    lock = tmp_path / "lock"
    argv = [sys.executable, "-u", "-c", HOLDER, lock]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as process:
        assert process.stdout.read(4) == b"held"
        with pytest.raises(apt.AptError):
            apt.wait_for_locks([lock], 0.0)
        process.stdin.close()
"""


def test_missing_part_is_installed_again_and_its_wait_printed(
    tmp_path: Path,
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_part.py").write_text(TESTS)
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=240)
    assert "2 passed, 1 error" in done.stdout, done.stdout
    assert "\nsetup: waiting for another apt: process" in done.stderr
    assert "MissingDependency: debootstrap is missing: another apt is at work" in done.stdout


GROUP = """
import pytest


@pytest.fixture(scope="session")
def pair(request):
    yield
    request.config.pair_ended = True


def test_last_of_its_group(pair):
    pass
"""
NEXT = """
def test_after_the_group(request):
    assert request.config.pair_ended
"""


def test_clusters_of_a_group_end_with_its_last_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for folder, text in (("conformance", GROUP), ("other", NEXT)):
        file = tmp_path / "tests" / folder / f"test_{folder}.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    done = subprocess.run(
        [*argv, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert "2 passed" in done.stdout, done.stdout
