"""Waits with a deadline: what they return, when they give up, and how often they read."""

from __future__ import annotations

import threading
from itertools import count
from operator import not_

import pytest

from urteil.chaos.waiting import retry, until

LONG_S = 60.0


def test_value_is_returned_once_it_is_true() -> None:
    numbers = count()
    assert until(lambda: next(numbers), deadline_s=LONG_S, poll_s=0.0) == 1


def test_value_is_returned_once_the_predicate_accepts_it() -> None:
    numbers = count()
    value = until(lambda: next(numbers), lambda n: n > 4, deadline_s=LONG_S, poll_s=0.0)
    assert value == 5


def test_last_problem_is_returned_after_the_deadline() -> None:
    numbers = count(1)
    value = until(lambda: f"problem {next(numbers)}", not_, deadline_s=0.02, poll_s=0.01)
    assert value.startswith("problem ")
    assert int(value.split()[1]) > 1


def test_condition_is_read_once_even_if_the_deadline_has_passed() -> None:
    assert until(lambda: "there", deadline_s=-1.0) == "there"
    assert until(lambda: "", deadline_s=-1.0) == ""


def test_condition_is_read_once_more_after_the_last_pause() -> None:
    values = ["", "late"]
    assert until(lambda: values.pop(0), deadline_s=0.01, poll_s=0.05) == "late"


def test_stop_ends_a_wait_without_another_reading() -> None:
    stop, readings = threading.Event(), count()
    stop.set()
    assert not until(lambda: bool(next(readings)), deadline_s=LONG_S, stop=stop)
    assert next(readings) == 1


def test_wait_ends_when_the_value_stops_changing() -> None:
    values = [3, 2, 1, 1]
    value = until(
        lambda: values.pop(0) if values else 1,
        lambda value: value == 0,
        deadline_s=LONG_S,
        poll_s=0.01,
        patience_s=0.05,
    )
    assert (value, values) == (1, [])


def test_error_of_the_reading_ends_a_wait() -> None:
    with pytest.raises(ZeroDivisionError):
        until(lambda: 1 / 0, deadline_s=LONG_S)


def test_transient_error_is_retried() -> None:
    failures = [OSError("first"), OSError("second")]

    def act() -> str:
        if failures:
            raise failures.pop(0)
        return "done"

    assert retry(act, OSError, deadline_s=LONG_S, poll_s=0.0) == "done"


def test_permanent_error_is_raised_at_once() -> None:
    attempts = count()

    def act() -> None:
        next(attempts)
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        retry(act, OSError, lambda error: str(error) != "no", deadline_s=LONG_S)
    assert next(attempts) == 1


def test_transient_error_is_raised_after_the_deadline() -> None:
    def act() -> None:
        raise OSError("still")

    with pytest.raises(OSError, match="still"):
        retry(act, OSError, deadline_s=0.02, poll_s=0.01)
