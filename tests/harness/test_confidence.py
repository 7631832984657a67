"""Confidence bounds of frequencies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.harness.confidence import lower_bound, upper_bound


def test_bounds_equal_published_values() -> None:
    assert lower_bound(29, 29) == pytest.approx(0.9019, abs=1e-4)
    assert lower_bound(28, 28) < 0.9
    assert upper_bound(0, 50) == pytest.approx(0.0582, abs=1e-4)
    assert lower_bound(9, 10) == pytest.approx(0.6058, abs=1e-4)
    assert (lower_bound(0, 9), upper_bound(9, 9), upper_bound(0, 0)) == (0.0, 1.0, 1.0)


@given(st.integers(0, 60), st.integers(0, 60))
def test_bounds_enclose_the_frequency(a: int, b: int) -> None:
    hits, tries = min(a, b), max(a, b)
    if tries:
        assert lower_bound(hits, tries) <= hits / tries <= upper_bound(hits, tries)


def test_more_hits_than_tries_are_rejected() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        lower_bound(3, 2)
