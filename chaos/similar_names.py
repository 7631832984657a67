"""Suggestions in errors about names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SIMILAR = 0.7
"""The least similarity, between 0 and 1, of a name that may be meant."""

MOST_SHOWN = 3
"""The most names that an error offers."""


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are similar to a name or begin with it, in any case; the most similar
    first. An empty name is similar to none."""
    prefix = name.lower()
    if not prefix:
        return []

    def similarity(candidate: str) -> float:
        spellings = (candidate.lower(), candidate.lower()[: len(prefix)])
        return max(difflib.SequenceMatcher(None, prefix, text).ratio() for text in spellings)

    ranked = sorted((-similarity(candidate), candidate) for candidate in known)
    return [candidate for ratio, candidate in ranked[:MOST_SHOWN] if -ratio >= SIMILAR]


def suggest(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """`did you mean A or B?`. If no known name is similar, `otherwise`, or all known names."""
    names = list(known)
    if similar := similar_names(name, names):
        return f"did you mean {' or '.join(similar)}?"
    return f"known: {', '.join(names) or 'none'}" if otherwise is None else otherwise
