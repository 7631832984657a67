"""Every bug that is not `unsimulated` is found, where the broker without it is found sound."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor

import pytest

from urteil.suites.mutants import MUTANTS
from urteil.suites.simulation.mixes import QUESTIONS, REPLICATION
from urteil.suites.simulation.mutation import mix_of, simulate_mutant
from urteil.suites.simulation.scenario import Run

FIRST = {
    "ack_before_replication": 2,
    "dedup_state_lost_on_leader_change": 2,
    "elect_any_replica": 3,
    "list_offsets_ignores_lso": 1,
    "offset_reused_after_recovery": 3,
    "serve_reads_beyond_hw": 2,
    "truncate_to_high_watermark": 3,
}
"""A bug of each kind and the seed to try first, which found it once; the others are thorough."""
HERE = sorted(name for name, mutant in MUTANTS.items() if not mutant.unsimulated)
FOUND_AS = {
    "stale_leader_accepts_writes": "no_progress",
    "truncated_batch_remembered": "lost_write",
    "timeout_is_success": "lost_write",
    "reassigned_at_once": "unclean_leader",
    "commits_always_loading": "no_progress",
    "producer_ids_reused": "lost_write",
    "pending_members_never_expire": "departed_member_kept",
    "rest_of_batch_skipped": "poll_skip",
    "stable_end_cached": "hanging_txn",
    "aborts_from_fetch_offset": "aborted_read",
    "newest_transaction_unstable": "precommitted_read",
    "txn_coordinator_not_unloaded": "no_progress",
    "torn_tail_is_fatal": "no_progress",
    "static_member_not_fenced": "no_progress",
}
"""Where not as in the lab: these clients wait for all replicas, which do not follow a stale leader;
so it acknowledges nothing that could be lost, and for ever is not a replica of its successor.
What was cut is acknowledged here, for others go on writing behind it. Nobody asks here where logs
end, but leaders that acknowledged too much do die. Members wait here for their commits. A
producer that has another one's id is acknowledged for what was a repetition. A group that waits for
a member that never joins rebalances too late. Readers do not commit, so that a record that they do
not receive is only skipped. The checks of fractured reads, of cycles and of stale ends have no
reference. Writers wait for a coordinator that was deposed. A broker that ends in its start never
joins an ISR, and one whose requests end in a traceback is a trouble of the run."""
SEEDS = (2, 3, 1, 5, 8, 9, 13, 21, 34)
"""Tried in this order until one finds the bug: which one does moves with every change of timing."""

Mutated = Callable[[str, int], tuple[Run, int]]
Twin = Callable[[int, str], Run]


def seeds(name: str) -> list[int]:
    """The seeds to try for a mutant, in order. Every seed puts all questions, so their first one is
    that of the default tests."""
    first = 1 if mix_of(name) == QUESTIONS else FIRST.get(name, SEEDS[0])
    return list(dict.fromkeys((first, *SEEDS)))


@pytest.fixture(scope="module")
def mutated(request: pytest.FixtureRequest, pool: ProcessPoolExecutor, twin: Twin) -> Mutated:
    """The run of a mutant at a seed; the first seed of every mutant begins at once."""
    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "mutated" in item.fixturenames
    ]
    begun: dict[tuple[str, int], Future[tuple[Run, int]]] = {
        (name, seed): pool.submit(simulate_mutant, name, seed)
        for name in asked
        for seed in seeds(name)[:1]
    }

    def run_of(name: str, seed: int) -> tuple[Run, int]:
        if (name, seed) not in begun:
            begun[name, seed] = pool.submit(simulate_mutant, name, seed)
        return begun[name, seed].result()

    return run_of


@pytest.fixture(scope="module")
def twin(sound: Callable[[int, str], Future[Run]]) -> Twin:
    """The run of the unmutated broker at a seed; that of the first seed begins at once."""
    sound(SEEDS[0], REPLICATION)
    return lambda seed, mix: sound(seed, mix).result()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FIRST else [pytest.mark.thorough]) for n in HERE]
)
def test_a_mutant_is_caught(name: str, mutated: Mutated, twin: Twin) -> None:
    guarantee, tried = FOUND_AS.get(name, MUTANTS[name].guarantee), []
    for seed in seeds(name):
        run, hits = mutated(name, seed)
        if guarantee in run.guarantees():
            assert hits, f"found without the bug having acted: {run}"
            sound = twin(seed, run.mix)
            assert not sound.findings, sound
            assert not sound.errors, sound
            return
        tried.append(f"seed {seed}: acted {hits} times, {sorted(run.guarantees())}")
    pytest.fail(f"{guarantee} was found at none of the seeds: {'; '.join(tried)}")
