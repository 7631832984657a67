"""The code of a source file with a drawn bug, and with a call before its line that records it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import CodeType

from urteil.suites.drawn_bugs.bug import DrawnBug
from urteil.suites.source_hook import install, relative

HIT = "__bug_hit__"
_PRELUDE = "from urteil.suites.drawn_bugs.changed_module import hit as __bug_hit__"
_on_hit: Callable[[], None] | None = None


def hit() -> None:
    """The line of the bug is about to run. Reported once."""
    global _on_hit
    if _on_hit is not None:
        report, _on_hit = _on_hit, None
        report()


def import_with_bug(bug: DrawnBug, on_hit: Callable[[], None]) -> None:
    """Import the broker with the bug from now on. `on_hit` is called before its line runs first.

    Raises StaleBug for another version of the file, SyntaxError for a bug that does not compile.
    """
    global _on_hit
    _on_hit = on_hit

    def compile_file(path: Path) -> CodeType | None:
        return _compile(bug, path) if relative(path) == bug.file else None

    install(compile_file)


def _compile(bug: DrawnBug, path: Path) -> CodeType:
    tree = ast.parse(bug.change(path.read_text()), str(path))
    _call_before(tree, bug.line)
    ast.fix_missing_locations(tree)
    code: CodeType = compile(tree, str(path), "exec", dont_inherit=True)
    return code


def _call_before(tree: ast.Module, line: int) -> None:
    """Put the call before the innermost statement of that line."""
    statements, at = _statement_at(tree.body, line)
    if at is not None:
        call = ast.parse(f"{HIT}()").body[0]
        ast.increment_lineno(call, line - 1)
        statements.insert(at, call)
    first = next((n for n, node in enumerate(tree.body) if not _must_be_first(node)), 0)
    tree.body[first:first] = ast.parse(_PRELUDE).body


def _must_be_first(node: ast.stmt) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _statement_at(statements: list[ast.stmt], line: int) -> tuple[list[ast.stmt], int | None]:
    """The innermost list with a statement of that line, and its place in it."""
    for at, statement in enumerate(statements):
        if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            for inner in _lists(statement):
                found = _statement_at(inner, line)
                if found[1] is not None:
                    return found
            return statements, at
    return statements, None


def _lists(statement: ast.stmt) -> list[list[ast.stmt]]:
    parts = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
    nested = (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))
    return [part for part in (*parts, *(each.body for each in nested)) if part]
