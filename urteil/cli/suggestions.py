"""Checks of typed names, with suggestions for unknown ones."""

from __future__ import annotations

from collections.abc import Iterable

import click

from urteil.chaos.similar_names import suggest

MOST_LISTED = 20
"""The most names of a kind that an error prints in full."""


def require_known(kind: str, name: str, names: Iterable[str]) -> str:
    """Return `name` if it is in `names`; else raise UsageError with the nearest names."""
    names = sorted(names)
    if name in names:
        return name
    otherwise = f"`urteil list {kind}s` shows all" if len(names) > MOST_LISTED else None
    raise click.UsageError(f"no {kind} named {name!r}; {suggest(name, names, otherwise)}")
