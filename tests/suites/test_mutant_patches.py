"""Mutants fit the broker: every function that they patch exists."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.suites.mutants import MUTANTS, Mutant
from urteil.suites.mutants.early_acknowledgement import Hasty
from urteil.suites.mutants.patching import Mark, NoSuchFunction, replace

APPLY = """
import sys
from pathlib import Path
from urteil.suites.mutants import MUTANTS, Mutant
from urteil.suites.mutants.patching import Mark
for name in sys.argv[1:]:
    MUTANTS[name].apply(Mark(None))
"""


def test_every_mutant_patches_an_existing_function() -> None:
    done = subprocess.run(
        [sys.executable, "-c", APPLY, *MUTANTS], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_mutant_names_a_scenario_and_a_guarantee(mutant: Mutant) -> None:
    assert mutant.scenario in SCENARIOS
    assert mutant.guarantee in GUARANTEES
    assert (
        mutant.guarantee in SCENARIOS[mutant.scenario].guarantees
        or GUARANTEES[mutant.guarantee].not_required
    )


def test_listing_mutants_does_not_import_the_broker() -> None:
    code = "import sys, urteil.suites.mutants; sys.exit('urteil.broker' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=240).returncode == 0


def test_early_appends_leave_the_other_functions_of_replicas() -> None:
    """A coordinator asks for its partition, too: a mutant without it would be found as a crash."""

    class Replicas:
        acks: int

        def partition(self, topic: str) -> str:
            return f"{topic}-0"

        async def append(self, timeout_ms: int, acks: int, batches: dict[str, bytes]) -> None:
            self.acks = acks

    replicas = Replicas()
    hasty = Hasty(replicas, Mark(None))
    asyncio.run(hasty.append(100, -1, {}))
    assert (replicas.acks, hasty.partition("t")) == (1, "t-0")


def test_missing_function_is_rejected() -> None:
    with pytest.raises(NoSuchFunction, match="no_such_function"):
        replace("urteil.suites.mutants.patching:Mark.no_such_function", lambda original: original)
    with pytest.raises(NoSuchFunction, match="nowhere"):
        replace("urteil.nowhere:function", lambda original: original)


def test_changed_signature_is_rejected() -> None:
    where = "urteil.suites.mutants.patching:Mark.hit"
    with pytest.raises(NoSuchFunction, match=r"Mark.hit takes \(self\)"):
        replace(where, lambda original: lambda: None)


def test_plain_function_in_place_of_a_coroutine_function_is_rejected() -> None:
    """The broker would end in a TypeError at the await, and be caught for that."""

    async def hit(mark: Mark) -> None:
        """Awaited."""

    with pytest.raises(NoSuchFunction, match="coroutine"):
        replace("urteil.suites.mutants.patching:Mark.hit", lambda original: hit)


def test_mark_is_written_once(tmp_path: Path) -> None:
    mark = Mark(tmp_path / "mark")
    mark.hit()
    assert (tmp_path / "mark").exists()
    (tmp_path / "mark").unlink()
    mark.hit()
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 254, "usage:"),
        (("no_crc_check", "file"), 254, "usage:"),
        (("no_such_mutant", "--", "file"), 254, "no mutant named 'no_such_mutant'"),
    ],
)
def test_launcher_reports_wrong_usage(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "urteil.suites.mutants.launch", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == code
    assert said in done.stderr
