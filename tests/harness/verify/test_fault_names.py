"""Judging reads the effects of faults and never their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from urteil.chaos.faults import FAULTS

VERIFY = Path(__file__).parents[3] / "harness" / "verify"
OTHER_MEANINGS = {
    "partition": "a column",
    "min_isr": "a column",
    "reset": "an event of a poll",
    "reassign": "an act",
    "quota": "an act",
    "retention": "a subject of guarantees",
    "record": "what topics hold; also an act in `link_events`",
}
"""Names of faults that are names of something else, too."""
SQL = re.compile(r"\bfault\s*(=|<>|!=|\bIN\b|\bLIKE\b)")


def modules() -> list[Path]:
    return sorted(VERIFY.rglob("*.py"))


def is_name_of_fault(node: ast.expr) -> bool:
    """Whether an expression is `row["fault"]`, or is made from that alone."""
    if isinstance(node, ast.Call):
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return any(map(is_name_of_fault, [*node.args, *receiver]))
    key = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(key, ast.Constant) and key.value == "fault"


def find_comparisons(tree: ast.AST) -> Iterator[int]:
    """Lines that compare the name of a fault, or look at its begin or end."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            operands = [node.func.value] if node.func.attr in ("startswith", "endswith") else []
        else:
            continue
        if any(map(is_name_of_fault, operands)):
            yield node.lineno


def test_verify_names_no_fault() -> None:
    named = [
        f"{path.relative_to(VERIFY)}:{node.lineno} {node.value}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        if node.value in FAULTS.keys() - OTHER_MEANINGS.keys()
    ]
    assert not named


def test_verify_does_not_read_fault_names() -> None:
    looks = [
        f"{path.relative_to(VERIFY)}:{line}"
        for path in modules()
        for line in find_comparisons(ast.parse(path.read_text()))
    ]
    assert not looks


def test_queries_do_not_read_fault_names() -> None:
    queries = [
        node.value
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert not [query for query in queries if SQL.search(query)]
