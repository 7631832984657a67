"""How a mutant changes the broker: one function, replaced by name, that tells when it ran."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Function = Callable[..., Any]

_replaced: list[tuple[Any, str, Any]] = []


class NoSuchFunction(Exception):
    """The broker has no function of that name any more: the mutant must follow it."""


class Mark:
    """A file that is there as soon as the mutated line ran once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def hit(self) -> None:
        """Leave the mark; costs nothing after the first time."""
        if self._path is not None:
            self._path.touch()
            self._path = None


def replace(where: str, make: Callable[[Function], Function]) -> None:
    """Put `make(original)` in place of `module:name` or `module:Class.name`.

    A module-level function is replaced where it is looked up: name the module that calls it.
    NoSuchFunction when nothing of that name is there.
    """
    module_name, _, path = where.partition(":")
    *owners, name = path.split(".")
    try:
        owner: Any = functools.reduce(getattr, owners, importlib.import_module(module_name))
        original = vars(owner)[name]
    except (ImportError, AttributeError, KeyError) as error:
        raise NoSuchFunction(f"{where} is not there to be patched") from error
    _replaced.append((owner, name, original))
    static = isinstance(original, staticmethod | classmethod)
    setattr(owner, name, make(original.__func__ if static else original))


def undo() -> None:
    """Put back whatever `replace` took out in this process."""
    while _replaced:
        setattr(*_replaced.pop())
