"""Checks of typed names, with suggestions for unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import click

MOST_SHOWN = 20
"""The most names of a kind that an error prints in full."""


def require_known(kind: str, name: str, names: Iterable[str]) -> str:
    """Return `name` if it is in `names`; else raise UsageError with the nearest names."""
    names = sorted(names)
    if name in names:
        return name
    remedy = f"`urteil list {kind}s` shows all"
    if similar := difflib.get_close_matches(name, names, n=3, cutoff=0.55):
        remedy = f"did you mean {' or '.join(similar)}? ({remedy})"
    elif len(names) <= MOST_SHOWN:
        remedy = f"known: {', '.join(names)}"
    raise click.UsageError(f"no {kind} named {name!r}; {remedy}")
