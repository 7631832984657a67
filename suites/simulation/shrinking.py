"""From a seed with a finding to the smallest run that still shows it.

A `Case` is a run that can be repeated: a seed, a mix and its scale, and the faults, each with its
instant and the seed of its choices. Every try plays one. Time is halved first, together with what
clients do in it, since tries become cheaper; then faults are taken away (delta debugging), clients
one by one, and partitions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from urteil.harness.delta_debugging import minimise
from urteil.suites.simulation.mixes import MIXES, Scale
from urteil.suites.simulation.scenario import Run, simulate
from urteil.suites.simulation.schedule import FAULTS, Fault

LEAST_S = 2.0
MOST_TRIES = 150


class NothingToShrink(ValueError):
    """The seed has no such finding, or its faults played again do not show it."""


class ChecksFailed(Exception):
    """The seed has no such finding, and checks failed: an error of the lab."""


class BadSchedule(ValueError):
    """The file is no schedule of a simulation."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run that can be repeated, and the guarantee that it violates."""

    seed: int
    mix: str
    scale: Scale
    faults: tuple[Fault, ...]
    guarantee: str = ""
    mutant: str | None = None

    def play(self) -> Run:
        return simulate(self.seed, self.scale, mix=self.mix, faults=self.faults)

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @staticmethod
    def read(file: Path) -> Case:
        """Raises OSError, BadSchedule."""
        try:
            given = json.loads(file.read_text())
            scale = given["scale"] | {"without": tuple(given["scale"]["without"])}
            faults = tuple(Fault(**fault) for fault in given["faults"])
            case = Case(**given | {"scale": Scale(**scale), "faults": faults})
        except (TypeError, KeyError, ValueError) as error:
            raise BadSchedule(f"{file} is no schedule of a simulation: {error!r}") from None
        names = {fault.name for fault in faults} - FAULTS
        if case.mix not in MIXES or names:
            raise BadSchedule(f"{file}: no mix or fault is named {names or case.mix}")
        return case


@dataclass(slots=True)
class Shrinking:
    """The smallest case so far. `play` plays one; `tries` counts them."""

    case: Case
    play: Callable[[Case], Run]
    clients: list[str]
    tries: int = 0
    _known: dict[Case, bool] = field(default_factory=dict)

    def run(self) -> Case:
        """Raises NothingToShrink."""
        if not self._shows(self.case):
            raise NothingToShrink(f"the faults played again do not show {self.case.guarantee}")
        for step in (self._time, self._faults, self._clients, self._partitions):
            for smaller in step():
                if self._shows(smaller):
                    self.case = smaller
        return self.case

    def _shows(self, case: Case) -> bool:
        if case not in self._known:
            if self.tries == MOST_TRIES:
                return False
            self.tries += 1
            self._known[case] = case.guarantee in self.play(case).guarantees()
        return self._known[case]

    def _time(self) -> Iterator[Case]:
        """Half of it, as long as that shows it."""
        while self.case.scale.faults_s / 2 >= LEAST_S:
            half = _first_half(self.case)
            yield half
            if self.case is not half:
                return

    def _faults(self) -> Iterator[Case]:
        yield replace(self.case, faults=())
        kept = minimise(self.case.faults, lambda some: self._shows(replace(self.case, faults=some)))
        yield replace(self.case, faults=kept)

    def _clients(self) -> Iterator[Case]:
        for name in self.clients:
            scale = self.case.scale
            yield replace(self.case, scale=replace(scale, without=(*scale.without, name)))

    def _partitions(self) -> Iterator[Case]:
        for partitions in range(1, self.case.scale.partitions):
            if partitions < self.case.scale.partitions:
                yield replace(self.case, scale=replace(self.case.scale, partitions=partitions))


def _first_half(case: Case) -> Case:
    """The first half of the load and of the faults."""
    scale = replace(case.scale, faults_s=case.scale.faults_s / 2, sends=case.scale.sends // 2)
    faults = tuple(fault for fault in case.faults if fault.at_s < scale.faults_s)
    return replace(case, scale=scale, faults=faults)


class Shrunk(NamedTuple):
    """The smallest case, how many runs it took, and the faults of the seed's own run."""

    case: Case
    tries: int
    faults_before: int


def shrink(seed: int, mix: str, guarantee: str | None, mutant: str | None) -> Shrunk:
    """Play a seed and shrink the first finding, or that of a guarantee. `mutant` is the bug that
    the brokers of this process have. Raises NothingToShrink, ChecksFailed."""
    run = simulate(seed, mix=mix)
    found = [finding.guarantee for finding in run.findings]
    if not found or guarantee not in (None, *found):
        if run.errors:
            raise ChecksFailed(str(run))
        shown = ", ".join(dict.fromkeys(found)) or "no finding"
        raise NothingToShrink(f"seed {seed} of {mix} has {shown}: nothing to shrink")
    case = Case(seed, mix, run.scale, tuple(run.faults), guarantee or found[0], mutant)
    shrinking = Shrinking(case, Case.play, run.clients)
    return Shrunk(shrinking.run(), shrinking.tries, len(run.faults))
