"""Checks of typed names, with suggestions for unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import click


def require_known(kind: str, name: str, names: Iterable[str]) -> str:
    """Return `name` if it is in `names`; else raise UsageError with the nearest names."""
    names = sorted(names)
    if name in names:
        return name
    similar = difflib.get_close_matches(name, names, n=3, cutoff=0.55)
    remedy = f"did you mean {' or '.join(similar)}?" if similar else f"known: {', '.join(names)}"
    raise click.UsageError(f"no {kind} named {name!r}; {remedy} (`urteil list {kind}s` shows all)")
