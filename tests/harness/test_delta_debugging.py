"""Delta debugging finds the items that are needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from urteil.harness.delta_debugging import halve, minimise

ITEMS = tuple(range(12))


@given(st.sets(st.sampled_from(ITEMS), min_size=1))
def test_minimum_contains_the_needed_items(needed: set[int]) -> None:
    assert minimise(ITEMS, lambda part: needed <= set(part)) == tuple(sorted(needed))


@given(st.sets(st.frozensets(st.sampled_from(ITEMS), min_size=1), min_size=1, max_size=5))
def test_every_item_of_the_minimum_is_needed(ways: set[frozenset[int]]) -> None:
    """Several ways to fail; and failing that comes and goes with more items."""

    def fails(part: tuple[int, ...]) -> bool:
        return any(way <= set(part) for way in ways) and (len(part) != 3 or sum(part) % 2 == 0)

    if not fails(ITEMS):
        return
    left = minimise(ITEMS, fails)
    assert fails(left)
    assert all(not fails(left[:n] + left[n + 1 :]) for n in range(len(left)) if len(left) > 1)


@given(st.frozensets(st.sampled_from(ITEMS), min_size=1))
def test_same_results_lead_to_same_tries(needed: frozenset[int]) -> None:
    def questions() -> list[tuple[int, ...]]:
        asked: list[tuple[int, ...]] = []
        minimise(ITEMS, lambda part: bool(asked.append(part)) or needed <= set(part))
        return asked

    assert questions() == questions()
    assert () not in questions()


def test_halving_ends_at_the_lower_limit() -> None:
    assert halve(8.0, 0.5, lambda _: True) == 0.5
    assert halve(8.0, 0.5, lambda value: value >= 2) == 2.0
    assert halve(0.4, 0.5, lambda _: True) == 0.4
