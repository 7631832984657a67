"""Declaration of mutants: decorated functions that patch the broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from urteil.suites.mutants.patching import Mark

Patch = Callable[[Mark], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A seeded bug: its effect, the real bug behind it, and the guarantee that must find it.

    `apply` patches the broker of this process; it must run before the broker is imported.
    `unsimulated` is the reason why suites/simulation cannot find the bug, or empty. `mix` names the
    clients there that show it, if not those of the guarantee's subject.
    """

    name: str
    about: str
    models: str
    scenario: str
    guarantee: str
    unsimulated: str
    mix: str
    apply: Patch


MUTANTS: dict[str, Mutant] = {}
"""Every declared mutant by name."""


def mutant(
    *, about: str, models: str, scenario: str, guarantee: str, unsimulated: str = "", mix: str = ""
) -> Callable[[Patch], Patch]:
    """Declare the decorated function as the patch of a mutant; its name is the mutant's."""

    def declare(apply: Patch) -> Patch:
        name = apply.__name__
        if name in MUTANTS:
            raise ValueError(f"two mutants are named {name}")
        MUTANTS[name] = Mutant(
            name=name,
            about=about,
            models=models,
            scenario=scenario,
            guarantee=guarantee,
            unsimulated=unsimulated,
            mix=mix,
            apply=apply,
        )
        return apply

    return declare
