"""Numbers with their nouns: `1 violation`, `3 violations`."""

from __future__ import annotations


def count_text(number: int, noun: str) -> str:
    """`1 violation`, `1,355 violations`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    """How often: `once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
