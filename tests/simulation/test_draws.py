"""Draws that begin as those of another run, and the runs that they determine."""

from __future__ import annotations

import random

from urteil.suites.simulation.draws import Draws
from urteil.suites.simulation.mixes import Scale
from urteil.suites.simulation.scenario import simulate

SHORT = Scale(sends=100, faults_s=6.0)


def some(source: random.Random) -> list[object]:
    return [
        source.uniform(1, 6),
        source.choice("abcd"),
        source.sample(range(9), 2),
        source.random(),
    ]


def test_draws_are_those_of_the_seed_and_can_be_repeated() -> None:
    first = Draws(1)
    assert some(first) == some(random.Random(1))
    assert some(Draws(2, first.made)) == some(random.Random(1))
    assert some(Draws(2, first.made[:1]))[0] == some(random.Random(1))[0]
    assert some(Draws(2, first.made[:1])) != some(random.Random(1))


def test_a_draw_of_another_kind_ends_the_repetition() -> None:
    other = Draws(1, [0.25, (3, 1), 0.5])
    assert (other.random(), other.getrandbits(5)) == (0.25, random.Random(1).getrandbits(5))
    assert other.random() != 0.5


def test_the_draws_of_a_run_repeat_it() -> None:
    first = Draws(5)
    run = simulate(3, SHORT, first)
    again = simulate(3, SHORT, Draws(6, first.made))
    assert (again.trace, again.events) == (run.trace, run.events)
    assert again.rows == run.rows
    assert {row["path"] for row in run.rows["states"]} >= {"/controller", "/brokers/ids/1"}
    assert not simulate(3, SHORT).rows
