"""Which runs of the simulation are kept, and how they are varied."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from urteil.harness.hunt import guided_draws
from urteil.harness.hunt.guided_draws import Draw, DrawnRun, Guide, Request, draw_runs

MADE: tuple[Draw, ...] = (0.5, (2, 3), 0.25, (4, 9))


def run(**reached: int) -> DrawnRun:
    return DrawnRun(seed=7, made=MADE, reached=reached, seconds=0.0)


def learned(*runs: DrawnRun) -> Guide:
    guide = Guide(Random(1))
    for each in runs:
        guide.learn(each)
    return guide


def test_runs_that_reach_something_new_are_kept() -> None:
    first, same, more, other = run(a=1, b=0), run(a=1), run(a=2), run(b=1)
    assert learned(first, same, more, other).kept == [first, more, other]
    assert learned(run(a=2), run(a=3), run(a=0)).kept == [run(a=2)], "3 has the length of 2"


def test_blind_runs_and_runs_before_any_was_kept_are_new() -> None:
    for guide, guided in ((learned(run(a=1)), False), (learned(), True)):
        requests = [guide.next_request(guided=guided) for _ in range(9)]
        assert {len(request.first) for request in requests} == {0}
        assert len({request.seed for request in requests}) == 9


def test_guided_runs_vary_a_kept_one() -> None:
    guide = learned(run(a=1))
    requests = [guide.next_request(guided=True) for _ in range(200)]
    varied = [request.first for request in requests if request.seed == 7]
    assert 120 < len(varied) < 190, "a fifth is new"
    prefixes = [first for first in varied if tuple(first) == MADE[: len(first)]]
    changed = [first for first in varied if first not in prefixes]
    assert {len(first) for first in prefixes} == {0, 1, 2, 3, 4}
    assert {len(first) for first in changed} == {4}
    for first in changed:
        differ = [old != new for old, new in zip(MADE, first, strict=True)]
        assert 1 <= sum(differ) <= 3
        assert [type(new) for new in first] == [float, tuple, float, tuple]
        assert all(isinstance(new, float) or new[1] < 1 << new[0] for new in first)


def test_runs_with_rare_states_are_varied_most() -> None:
    common, rare = run(a=1), DrawnRun(seed=8, made=MADE, reached={"a": 1, "b": 1}, seconds=0.0)
    guide = learned(common, rare, *[run(a=1)] * 20)
    seeds = [guide.next_request(guided=True).seed for _ in range(200)]
    assert seeds.count(8) > 5 * seeds.count(7)


@pytest.mark.parametrize("guided", [True, False])
def test_a_seed_repeats_its_requests(guided: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def play(requests: Sequence[Request]) -> list[DrawnRun]:
        asked.extend(requests)
        return [run(a=len(asked)) for _ in requests]

    monkeypatch.setattr(guided_draws, "_play", play)
    for _ in range(2):
        assert len(list(draw_runs(10, seed=3, guided=guided))) == 10
    assert asked[:10] == asked[10:]
