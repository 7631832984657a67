"""The page of mutants, by the part of the broker that they patch."""

from __future__ import annotations

from docs.reference_pages.markdown import code, page, table
from urteil.suites.mutants import MUTANTS, Mutant

ABOUT = """\
Seeded bugs of our broker: what each does, the real bug or rule that it models, the scenario that is
meant to show it, and the guarantee that must be violated. Some cannot be seen by the
[simulation](../guide/simulation.md); the last column says why.
`urteil run SCENARIO --mutant NAME` starts the broker with one.
[The matrix of mutants](../guide/mutants.md) measures which are caught. This page is generated from
`suites/mutants/` by `make docs`."""


def render() -> dict[str, str]:
    subjects: dict[str, list[Mutant]] = {}
    for mutant in MUTANTS.values():
        subject = mutant.apply.__module__.rpartition(".")[2].replace("_", " ")
        subjects.setdefault(subject, []).append(mutant)
    sections = [_section(subject, mutants) for subject, mutants in sorted(subjects.items())]
    about = f"{ABOUT}\n\nThere are {len(MUTANTS)}."
    return {"mutants.md": page("Mutants", about, *sections)}


def _section(subject: str, mutants: list[Mutant]) -> str:
    head = ("mutant", "effect", "models", "scenario", "guarantee", "not simulated because")
    rows = [
        (code(mutant.name), mutant.about, mutant.models, code(mutant.scenario),
         code(mutant.guarantee), mutant.unsimulated)
        for mutant in mutants
    ]  # fmt: skip
    return f"## {subject.capitalize()}\n\n{table(head, rows)}"
