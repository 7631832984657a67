"""Acts on several items at the same time."""

from __future__ import annotations

import threading

import pytest

from urteil.chaos.parallel import run_on_all

LONG_S = 60.0


def test_items_run_at_the_same_time_with_results_in_order() -> None:
    together = threading.Barrier(3, timeout=LONG_S)

    def act(item: int) -> int:
        together.wait()
        return -item

    assert run_on_all(act, [3, 1, 2]) == [-3, -1, -2]


def test_first_failure_is_raised_when_all_have_ended() -> None:
    ended: list[int] = []
    has_failed = threading.Event()

    def act(item: int) -> None:
        if item == 0:
            has_failed.set()
            raise ValueError("the first")
        has_failed.wait(LONG_S)
        ended.append(item)

    with pytest.raises(ValueError, match="the first"):
        run_on_all(act, range(3))
    assert sorted(ended) == [1, 2]


def test_single_item_runs_in_the_thread_of_the_caller() -> None:
    assert run_on_all(lambda _: threading.get_ident(), ["b1"]) == [threading.get_ident()]


def test_no_item_has_no_result() -> None:
    assert run_on_all(lambda item: item, []) == []
