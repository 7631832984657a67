"""The scenarios of each suite: those that its tests name."""

from __future__ import annotations

import ast
from collections.abc import Collection
from pathlib import Path

ROOM = Path(__file__).parent
APART = ("mutants", "containers")
"""Folders whose tests play scenarios of all suites, with mutants or in containers."""


def suites() -> list[str]:
    """Names of all suites: the folders with tests."""
    return sorted(
        folder.name
        for folder in ROOM.iterdir()
        if folder.name not in APART and any(folder.glob("test_*.py"))
    )


def scenarios_of(suite: str, known: Collection[str]) -> list[str]:
    """Scenarios of `known` that the tests of a suite name, in the order of `known`."""
    named = {
        node.value
        for file in (ROOM / suite).glob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return [name for name in known if name in named]
