"""Runs of the simulation whose faults are drawn blindly, or guided by the rare states reached.

A run of the simulation is determined by its seed and by the draws of its faults. Guided, a run
that reached something new is kept: a state for the first time, or more often than before by a power
of two. Most further runs vary a kept one. Either the first draws stay, so that the run repeats the
kept one up to a moment and then goes another way, or single draws change, so that a fault comes at
another time, hits another broker, or is another one.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.hunt.simulation import NoSimulation, simulate
from urteil.harness.scenario import RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.rare_states.counting import count_states

Draw = float | tuple[int, int]
"""A draw: a number below 1, or a number of bits and their value."""
AT_ONCE = 4
"""The number of runs of one child process; they vary runs that were kept before."""
FRESH = 0.2
"""The share of guided runs that are drawn blindly."""
WHOLE_PREFIX = 0.5
"""The share of variations that keep the first draws; the others change single draws."""
MOST_CHANGED = 3
LIMIT_S = 300.0


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The length of a run: short, since every further fault makes all states likelier."""

    sends: int = 200
    faults_s: float = 10.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A run to play: its seed, the first draws of its faults, and the seed of further ones."""

    seed: int
    draw_seed: int
    first: Sequence[Draw] = ()
    scale: Scale = Scale()


class _Played(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the simulation: all draws, and the rows of evidence by table."""

    made: list[Draw]
    rows: dict[str, list[dict[str, object]]]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRun:
    """A played run with its draws and the counts of the states."""

    seed: int
    made: Sequence[Draw]
    reached: dict[str, int]
    seconds: float


@dataclass(slots=True)
class Guide:
    """The kept runs, and the chance by which each is varied."""

    random: Random
    kept: list[DrawnRun] = field(default_factory=list)
    most: dict[str, int] = field(default_factory=dict)
    """State to the bit length of its highest count."""
    runs_of: Counter[str] = field(default_factory=Counter)
    """State to the number of runs that reached it."""

    def next_request(self, *, guided: bool) -> Request:
        """A new run, or a variation of a kept one."""
        fresh = Request(seed=self._seed(), draw_seed=self._seed())
        if not guided or not self.kept or self.random.random() < FRESH:
            return fresh
        run = self._choose()
        return Request(seed=run.seed, draw_seed=self._seed(), first=self._vary(run.made))

    def learn(self, run: DrawnRun) -> None:
        """Keep a run that reached something new."""
        lengths = {name: count.bit_length() for name, count in run.reached.items() if count}
        self.runs_of.update(lengths.keys())
        if any(length > self.most.get(name, 0) for name, length in lengths.items()):
            self.kept.append(run)
        self.most |= {name: max(length, self.most.get(name, 0)) for name, length in lengths.items()}

    def _choose(self) -> DrawnRun:
        """A kept run, the likelier the fewer runs reached its rarest state."""
        weights = [
            1 / min(self.runs_of[name] for name, count in run.reached.items() if count)
            for run in self.kept
        ]
        return self.random.choices(self.kept, weights)[0]

    def _vary(self, made: Sequence[Draw]) -> list[Draw]:
        draws = list(made)
        if self.random.random() < WHOLE_PREFIX:
            return draws[: self.random.randrange(len(draws) + 1)]
        for _ in range(self.random.randint(1, MOST_CHANGED)):
            place = self.random.randrange(len(draws))
            draws[place] = self._redraw(draws[place])
        return draws

    def _redraw(self, draw: Draw) -> Draw:
        if isinstance(draw, float):
            return self.random.random()
        return draw[0], self.random.getrandbits(draw[0])

    def _seed(self) -> int:
        return self.random.getrandbits(48)


def draw_runs(count: int, *, seed: int, guided: bool) -> Iterator[DrawnRun]:
    """Play `count` runs. Raises NoSimulation if the simulation cannot be played."""
    guide = Guide(Random(seed))
    for begin in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - begin)
        for run in _play([guide.next_request(guided=guided) for _ in range(size)]):
            guide.learn(run)
            yield run


def _play(requests: Sequence[Request]) -> list[DrawnRun]:
    with tempfile.TemporaryDirectory(prefix="urteil-draws-") as name:
        folder = Path(name)
        files = [folder / f"{number}.json" for number in range(len(requests))]
        for file, request in zip(files, requests, strict=True):
            file.write_bytes(msgspec.json.encode(request))
        child = simulate((), limit_s=LIMIT_S * len(files), draws=files)
        if child.exit_code != 0:
            raise NoSimulation(f"the simulation ended early: {child.output}")
        return [
            _count_run(
                request, msgspec.json.decode(file.read_bytes(), type=_Played), folder / "run"
            )
            for request, file in zip(requests, files, strict=True)
        ]


def _count_run(request: Request, played: _Played, run_dir: Path) -> DrawnRun:
    """The run with the counts over its rows, which are written as its evidence."""
    for table, rows in played.rows.items():
        evidence.write_rows(run_dir / "evidence" / table, SCHEMAS[table], rows)
    facts = RunFacts(run="simulation", seed=request.seed, scenario="simulation", target="urteil",
                     runtime="simulation", boot_id="", command="")  # fmt: skip
    reached = count_states(run_dir, facts).reached
    return DrawnRun(seed=request.seed, made=played.made, reached=reached, seconds=played.seconds)
