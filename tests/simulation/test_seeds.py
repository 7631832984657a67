"""Every seed keeps every guarantee, and a seed is always the same run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from urteil.suites.simulation.mixes import (
    ADMINISTRATION,
    COMPACTED_TRANSACTIONS,
    COMPACTION,
    GROUPS,
    QUESTIONS,
    REPLICATION,
    RETENTION,
    TRANSACTIONS,
    Scale,
)
from urteil.suites.simulation.scenario import Run

ONCE = """
import hashlib, sys
from urteil.suites.simulation.draws import Draws
from urteil.suites.simulation.mixes import Scale
from urteil.suites.simulation.scenario import simulate
mix, seed, faults_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
run = simulate(seed, Scale(sends=300, faults_s=faults_s), Draws(seed), mix)
evidence = hashlib.sha256(repr((run.rows, run.faults, run.outcomes)).encode()).hexdigest()
print(run.trace, run.events, evidence, min(map(len, run.rows.values())))
"""


LEAST_OK = {
    REPLICATION: Scale().sends // 2,
    TRANSACTIONS: 50,
    COMPACTED_TRANSACTIONS: 50,
    GROUPS: 20,
    COMPACTION: 250,
    RETENTION: 250,
    ADMINISTRATION: 150,
    QUESTIONS: 100,
}
"""Sends, in groups commits, and right answers of questions."""


def test_a_seed_keeps_every_guarantee(
    mix: str,
    seed: int,
    runs: dict[tuple[str, int], Future[Run]],
    keep: Callable[[Run], None],
) -> None:
    run = runs[mix, seed].result()
    keep(run)
    assert run.outcomes["right" if mix == QUESTIONS else "ok"] > LEAST_OK[mix], run
    assert not run.findings, run
    assert not run.errors, run


@pytest.mark.parametrize(
    ("mix", "which"),
    [
        (REPLICATION, 3),
        (GROUPS, 3),
        *(
            pytest.param(mix, 4, marks=pytest.mark.thorough)
            for mix in (
                *(REPLICATION, TRANSACTIONS, COMPACTED_TRANSACTIONS, COMPACTION, RETENTION),
                *(ADMINISTRATION, QUESTIONS),
            )
        ),
    ],
)
def test_the_same_seed_is_the_same_run(mix: str, which: int) -> None:
    """In two processes whose sets of strings have different orders: events and evidence."""
    faults_s = 0.0 if mix == QUESTIONS else 20.0
    playing = [
        subprocess.Popen(
            [sys.executable, "-c", ONCE, mix, str(which), str(faults_s)],
            env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in (1, 2)
    ]
    first, other = (process.communicate(timeout=200)[0].split() for process in playing)
    assert first == other
    assert int(first[1]) > 5_000
    if mix == REPLICATION:
        assert int(first[3]) > 0, "a table of evidence is empty"
