"""What so many runs show, as a bound: a frequency is never told without it.

C. Clopper and E. Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934).
"""

from __future__ import annotations

from math import comb

CONFIDENCE = 0.95
_STEPS = 60


def lower_bound(hits: int, tries: int, confidence: float = CONFIDENCE) -> float:
    """The true frequency is at least this, one-sided: 29 of 29 give 0.90."""
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
    """The true frequency is at most this, one-sided: 0 of 50 give 0.058 (the rule of three)."""
    return 1 - lower_bound(tries - hits, tries, confidence)


def _tail_probability(hits: int, tries: int, p: float) -> float:
    """How likely `hits` or more of `tries` are when each is with probability `p`."""
    return float(
        sum(comb(tries, k) * p**k * (1 - p) ** (tries - k) for k in range(hits, tries + 1))
    )
