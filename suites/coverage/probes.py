"""Probes in the source of a module: each block of statements marks its first line when it begins.

A *block* is a run of statements that execute one after another: it ends where control can branch,
return from a nested statement, or wait (`await`, `yield`). Its lines count as run once it began, so
a statement after one that raised counts as run, too. Lines that Python never executes (comments,
docstrings, `...`, imports for type checkers) belong to no block.

The marks are bytes of a memory-mapped file (`line_files`), so they survive SIGKILL, which neither
coverage.py's data nor any other that a process writes at its end does. A probe is one assignment,
on every Python; `sys.monitoring` would be cheaper, but exists from Python 3.12 on only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

MARKS = "__line_marks__"
PRELUDE = """
from urteil.suites.coverage.line_files import open_marks as __open_marks__
{marks} = __open_marks__({name!r}, {digest!r}, {size})
"""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_TRIES = (ast.Try, ast.TryStar)
_WAITING = (ast.Await, ast.Yield, ast.YieldFrom)
_NESTED = (ast.Lambda, *_DEFINITIONS)


@dataclass(frozen=True, slots=True)
class Block:
    """Statements that run one after another. `line` is the first one's, `lines` are all of them."""

    line: int
    lines: list[int] = field(default_factory=list)


def blocks_of(source: str) -> list[Block]:
    """The blocks of a module."""
    return _Prober().probe(ast.parse(source))


def with_probes(source: str, name: str, digest: str) -> ast.Module:
    """The module with a probe before each block. `name` and `digest` name its file of marks."""
    tree = ast.parse(source)
    _Prober().probe(tree)
    prelude = PRELUDE.format(
        marks=MARKS, name=name, digest=digest, size=source.count("\n") + 2
    )  # fmt: skip
    at = next((n for n, node in enumerate(tree.body) if not _must_be_first(node)), len(tree.body))
    tree.body[at:at] = ast.parse(prelude).body
    return ast.fix_missing_locations(tree)


def _must_be_first(node: ast.stmt) -> bool:
    return _is_docstring(node) or (
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
    )  # fmt: skip


def _is_docstring(node: ast.stmt) -> bool:
    """A string, or `...`: a statement without effect."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str | type(...))
    )


class _Prober:
    """Puts probes into a tree, and lists its blocks."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._opened: Block | None = None

    def probe(self, tree: ast.Module) -> list[Block]:
        tree.body = self._probe_list(tree.body)
        return [block for block in self._blocks if block.lines]

    def _probe_list(
        self, statements: list[ast.stmt], header: tuple[int, ...] = ()
    ) -> list[ast.stmt]:
        """The statements with probes; the lines of `header` belong to the first block."""
        probed: list[ast.stmt] = []
        block: Block | None = None
        for statement in statements:
            if _must_be_first(statement):
                probed.append(statement)
                continue
            if isinstance(statement, _TRIES):
                header, block = (*header, statement.lineno), None
                self._probe_parts(statement, header)
                header = ()
            else:
                if block is None:
                    block = Block(statement.lineno, [*header])
                    header = ()
                    self._blocks.append(block)
                    probed.append(_mark(block.line))
                block.lines.extend(_own_lines(statement))
                self._probe_parts(statement)
                if _ends_block(statement):
                    block = None
            probed.append(statement)
        return probed

    def _probe_parts(self, statement: ast.stmt, header: tuple[int, ...] = ()) -> None:
        if _is_for_type_checkers(statement):
            return
        for name in ("body", "orelse", "finalbody"):
            if part := getattr(statement, name, None):
                setattr(statement, name, self._probe_list(part, header if name == "body" else ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            line = part.lineno if isinstance(part, ast.ExceptHandler) else part.pattern.lineno
            part.body = self._probe_list(part.body, (line,))


def _mark(line: int) -> ast.stmt:
    """`__line_marks__[line] = 1`."""
    target = ast.Subscript(ast.Name(MARKS, ast.Load()), ast.Constant(line), ast.Store())
    return ast.Assign([target], ast.Constant(1), lineno=line, end_lineno=line)


def _own_lines(statement: ast.stmt) -> range:
    """The lines of a simple statement, or of the head of a compound one."""
    decorators = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(node.lineno for node in decorators)])
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not body:
        return range(first, (statement.end_lineno or first) + 1)
    return range(first, max(_head_end(statement), first) + 1)


def _head_end(statement: ast.stmt) -> int:
    """The last line of an expression in the head of a compound statement."""
    heads = [
        node.end_lineno or 0
        for name, value in ast.iter_fields(statement)
        if name not in ("body", "orelse", "finalbody", "handlers", "cases")
        for node in (value if isinstance(value, list) else [value])
        if isinstance(node, ast.expr | ast.withitem | ast.arguments)
        for node in ast.walk(node)
        if hasattr(node, "end_lineno")
    ]
    return max([statement.lineno, *heads])


def _ends_block(statement: ast.stmt) -> bool:
    """Whether control may not reach the next statement, or only later."""
    if isinstance(statement, _DEFINITIONS):
        return False
    return hasattr(statement, "body") or hasattr(statement, "cases") or _waits(statement)


def _waits(node: ast.AST) -> bool:
    return isinstance(node, _WAITING) or any(
        _waits(child) for child in ast.iter_child_nodes(node) if not isinstance(child, _NESTED)
    )


def _is_for_type_checkers(statement: ast.stmt) -> bool:
    test = getattr(statement, "test", None)
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def lines_run(source: str, marks: bytes) -> set[int]:
    """The lines of the blocks that are marked."""
    return {
        line
        for block in blocks_of(source)
        if block.line < len(marks) and marks[block.line]
        for line in block.lines
    }


def executable_lines(source: str) -> Iterator[int]:
    """The lines of all blocks, in order."""
    yield from sorted({line for block in blocks_of(source) for line in block.lines})
