"""Patches of mutants: replace one function of the broker by name, and record that it ran."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

Function = Callable[..., Any]

_replaced: list[tuple[Any, str, Any]] = []


class NoSuchFunction(Exception):
    """The broker has no function of that name or signature: adapt the mutant."""


class Mark:
    """A file that exists as soon as the mutated line has run once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def hit(self) -> None:
        """Create the file; later calls do nothing."""
        if self._path is not None:
            self._path.touch()
            self._path = None


def replace(where: str, make: Callable[[Function], Function]) -> None:
    """Put `make(original)` in place of `module:name` or `module:Class.name`.

    A module-level function is replaced where it is looked up: name the module that calls it.
    Raises NoSuchFunction when the name does not exist or the signatures do not fit.
    """
    module_name, _, path = where.partition(":")
    *owners, name = path.split(".")
    try:
        owner: Any = functools.reduce(getattr, owners, importlib.import_module(module_name))
        original = vars(owner)[name]
    except (ImportError, AttributeError, KeyError) as error:
        raise NoSuchFunction(f"{where} does not exist; adapt the mutant") from error
    function = original.__func__ if isinstance(original, staticmethod | classmethod) else original
    mutated = make(function)
    if isinstance(function, FunctionType):
        _check(where, function, mutated)
    _replaced.append((owner, name, original))
    setattr(owner, name, mutated)


def _check(where: str, function: FunctionType, mutated: Function) -> None:
    """Raise NoSuchFunction unless `mutated` accepts the original's arguments, and is awaited if the
    original is."""
    if inspect.iscoroutinefunction(function) != inspect.iscoroutinefunction(mutated):
        raise NoSuchFunction(f"{where} is a coroutine function, or the mutant's one is; not both")
    taken = inspect.signature(function).parameters.values()
    named = {
        parameter.name: None for parameter in taken if parameter.kind is parameter.KEYWORD_ONLY
    }
    placed = [
        None
        for parameter in taken
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    try:
        inspect.signature(mutated).bind(*placed, **named)
    except TypeError as error:
        raise NoSuchFunction(f"{where} takes {inspect.signature(function)}: {error}") from error


def undo() -> None:
    """Restore every function that `replace` replaced in this process."""
    while _replaced:
        setattr(*_replaced.pop())
