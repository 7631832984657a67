"""One seed on brokers with one seeded bug; the bug is taken out again."""

from __future__ import annotations

from urteil.chaos import capabilities
from urteil.harness.verify.guarantees import GUARANTEES, SUBJECTS
from urteil.harness.verify.guarantees.base import Occasion
from urteil.suites.mutants import MUTANTS, patching
from urteil.suites.mutants.patching import Mark
from urteil.suites.simulation.mixes import MIXES, QUESTIONS, REPLICATION, TRANSACTIONS
from urteil.suites.simulation.scenario import Run, simulate


class Count(Mark):
    """How often the mutated line ran."""

    def __init__(self) -> None:
        super().__init__(None)
        self.hits = 0

    def hit(self) -> None:
        self.hits += 1


def mix_of(name: str) -> str:
    """The mix that shows the bug: the declared one, or the one of its guarantee's subject."""
    mutant = MUTANTS[name]
    if mutant.mix:
        return mutant.mix
    if GUARANTEES[mutant.guarantee].occasion is Occasion.KNOWN_ANSWERS:
        return QUESTIONS
    needs = GUARANTEES[mutant.guarantee].requires
    if capabilities.TRANSACTIONS in needs:
        return TRANSACTIONS
    return next(
        (
            subject
            for subject, guarantees in SUBJECTS.items()
            if subject in MIXES and mutant.guarantee in {each.name for each in guarantees}
        ),
        REPLICATION,
    )


def simulate_mutant(name: str, seed: int) -> tuple[Run, int]:
    """What came of it, and how often the bug acted."""
    count = Count()
    MUTANTS[name].apply(count)
    try:
        return simulate(seed, mix=mix_of(name)), count.hits
    finally:
        patching.undo()
