"""Confidence bounds of a frequency, printed beside each frequency that the lab reports.

C. Clopper and E. Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934).
"""

from __future__ import annotations

from math import comb

CONFIDENCE = 0.95
_STEPS = 60


def lower_bound(hits: int, tries: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided lower bound of the true frequency: 29 of 29 give 0.90."""
    if not 0 <= hits <= tries:
        raise ValueError(f"{hits} of {tries} cannot be")
    if not hits:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _tail_probability(hits, tries, middle) > 1 - confidence:
            high = middle
        else:
            low = middle
    return low


def upper_bound(hits: int, tries: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided upper bound of the true frequency: 0 of 50 give 0.058 (the rule of three)."""
    return 1 - lower_bound(tries - hits, tries, confidence)


def _tail_probability(hits: int, tries: int, p: float) -> float:
    """The probability of at least `hits` of `tries`, each with probability `p`."""
    return float(
        sum(comb(tries, k) * p**k * (1 - p) ** (tries - k) for k in range(hits, tries + 1))
    )
