"""What counts show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.harness.bounds import at_least, at_most


def test_the_bounds_that_are_promised() -> None:
    assert at_least(29, 29) == pytest.approx(0.9019, abs=1e-4)
    assert at_least(28, 28) < 0.9
    assert at_most(0, 50) == pytest.approx(0.0582, abs=1e-4)
    assert at_least(9, 10) == pytest.approx(0.6058, abs=1e-4)
    assert (at_least(0, 9), at_most(9, 9), at_most(0, 0)) == (0.0, 1.0, 1.0)


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_bound_lies_beyond_what_was_seen(a: int, b: int) -> None:
    hits, tries = min(a, b), max(a, b)
    if tries:
        assert at_least(hits, tries) <= hits / tries <= at_most(hits, tries)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        at_least(3, 2)
