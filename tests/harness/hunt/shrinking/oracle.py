"""A simulated cluster that violates a guarantee under given faults, for tests of shrinking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from random import Random

from urteil.harness.hunt.shrinking import Anomaly, Outcome, Rule, Tries
from urteil.harness.hunt.shrinking.tries import key_of
from urteil.harness.schedule import Entry, Schedule

LOST = Anomaly("lost_write", "tail")
OTHER = Anomaly("lost_write", "middle")
STRANGE = Anomaly("duplicate")


def schedule(count: int, *, seconds: float = 6.0, pause: float = 4.0) -> Schedule:
    """A schedule of `n` crashes, one after another; each is identified by its choice."""
    entries = tuple(
        Entry(fault="crash", target="leader", at_s=5 + n * (seconds + pause), duration_s=seconds,
              choice=f"f{n}")
        for n in range(count)
    )  # fmt: skip
    lasts = 5 + count * (seconds + pause) + 4
    return Schedule(
        scenario="paper",
        seed=1,
        duration_s=lasts,
        rate_records_per_s=320.0,
        producers=2,
        faults=entries,
    )


class Paper:
    """Shows LOST when every fault of `needs` is there for its seconds and the load suffices.

    `chance` is how often it shows it then, drawn by the schedule and the number of its try.
    `elsewhere` shows other anomalies whenever LOST does not come, `always` says what comes anyway.
    """

    def __init__(
        self,
        needs: Mapping[int, float],
        *,
        chance: float = 1.0,
        rate: float = 0.0,
        elsewhere: Collection[Anomaly] = (),
        always: Collection[Anomaly] = (),
    ) -> None:
        self.needs = {f"f{n}": seconds for n, seconds in needs.items()}
        self.chance, self.rate = chance, rate
        self.elsewhere, self.always = tuple(elsewhere), tuple(always)
        self.asked: dict[str, int] = {}
        self.played: list[Schedule] = []

    def __call__(self, asked: Schedule) -> Outcome:
        self.played.append(asked)
        key = key_of(asked)
        turn = self.asked[key] = self.asked.get(key, 0) + 1
        lengths = {fault.choice: fault.duration_s for fault in asked.faults}
        there = all(lengths.get(n, -1.0) >= seconds for n, seconds in self.needs.items())
        enough = (asked.rate_records_per_s or 0.0) >= self.rate
        luck = Random(f"{key}/{turn}").random() < self.chance
        hit = bool(self.needs) and there and enough and luck
        shows = (LOST,) if hit else self.elsewhere if asked.faults else ()
        return Outcome(run=f"run-{len(self.played)}", verdict="FAIL", shows=(*shows, *self.always))


def tries(
    play: Callable[[Schedule], Outcome],
    folder: Path,
    *,
    hits: int = 1,
    of: int = 1,
    deadline: float = float("inf"),
) -> Tries:
    return Tries(play, LOST, folder / "tries.jsonl", rule=Rule(hits=hits, tries=of),
                 deadline=deadline)  # fmt: skip
