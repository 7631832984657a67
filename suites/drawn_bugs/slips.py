"""Mutation operators of this lab, in the form of cosmic-ray's, for slips that it does not make.

An operator names the positions of a parso node at which it can act, and changes the node for one
of them. `examples` are its tests.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import parso
from cosmic_ray.operators.exception_replacer import ExceptionReplacer
from cosmic_ray.operators.operator import Argument, Example, Operator

Position = tuple[tuple[int, int], tuple[int, int]]
_GUARD_ENDS = ("return_stmt", "raise_stmt")
_LOGGING = ("log.", "logger.", "_log.", "_logger.", "logging.", "LOG.", "self._log.", "warnings.")
_RESETS = ("clear", "discard", "pop", "popitem", "cancel", "remove")
_EMPTY = ("None", "0", "0.0", "-1", "False", "{}", "[]", "()", "set()", "dict()", "deque()")


def _position(node: Any) -> Position:
    return node.start_pos, node.end_pos


def _code(node: Any) -> str:
    return str(node.get_code(include_prefix=False)).strip()


def _statement(node: Any) -> Any | None:
    """The statement of a line with exactly one, in a function; None for other nodes."""
    if node.type != "simple_stmt" or len(node.children) != 2:
        return None
    inner = node.children[0]
    inside = parso.tree.search_ancestor(node, "funcdef") is not None
    return inner if inside and inner.type not in ("string", "strings") else None


def _assignment(statement: Any) -> tuple[str, str] | None:
    """Target and value of `a.b = value`; None for other statements."""
    if statement.type != "expr_stmt" or len(statement.children) != 3:
        return None
    target, sign, value = statement.children
    if getattr(sign, "value", "") != "=":
        return None
    return _code(target), _code(value)


def _is_call(statement: Any) -> bool:
    is_call = statement.type in ("atom_expr", "power")
    return is_call and _code(statement.children[-1]).startswith("(")


def _is_logging(statement: Any) -> bool:
    return _code(statement).removeprefix("await ").startswith(_LOGGING)


def _is_reset(statement: Any) -> bool:
    """`self.x = None` and the like, or a call that empties something."""
    if (assigned := _assignment(statement)) is not None:
        target, value = assigned
        return "." in target and value in _EMPTY
    if not _is_call(statement):
        return False
    names = [child for child in statement.children if child.type == "trailer"]
    return len(names) > 1 and _code(names[-2]).removeprefix(".") in _RESETS


def _has_effect(statement: Any) -> bool:
    """A call, or an assignment to an attribute or an element."""
    if _is_logging(statement):
        return False
    if _is_call(statement):
        return True
    if statement.type == "expr_stmt":
        target = _code(statement.children[0])
        return target.endswith("]") or "." in target
    return str(statement.type) == "del_stmt"


def _pass_for(node: Any) -> Any:
    """`pass` in place of a statement."""
    node.children[0] = parso.python.tree.Keyword(
        "pass", node.start_pos, prefix=node.get_first_leaf().prefix
    )
    return node


class _OneWay(Operator):  # type: ignore[misc]
    """An operator with at most one change of a node."""

    @abstractmethod
    def matches(self, node: Any) -> bool:
        """Whether the node can be changed."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if self.matches(node):
            yield _position(node)


class StatementLeftOut(_OneWay):
    """A call or an assignment to an attribute that is forgotten."""

    def matches(self, node: Any) -> bool:
        statement = _statement(node)
        return statement is not None and _has_effect(statement) and not _is_reset(statement)

    def mutate(self, node: Any, index: int) -> Any:
        return _pass_for(node)

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return (
            Example("def f(self):\n    self.end = 1\n", "def f(self):\n    pass\n", occurrence=0),
            Example("def f(x):\n    x.sync(1)\n", "def f(x):\n    pass\n"),
        )


class StateNotReset(_OneWay):
    """State that is not emptied where it should be."""

    def matches(self, node: Any) -> bool:
        statement = _statement(node)
        return statement is not None and _is_reset(statement)

    def mutate(self, node: Any, index: int) -> Any:
        return _pass_for(node)

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return (
            Example("def f(x):\n    x.kept = None\n", "def f(x):\n    pass\n"),
            Example("def f(x):\n    x.kept.clear()\n", "def f(x):\n    pass\n"),
        )


class AwaitLeftOut(_OneWay):
    """A coroutine that is called and not awaited. Only statements: elsewhere the result fails."""

    def matches(self, node: Any) -> bool:
        statement = _statement(node)
        first = getattr(statement, "children", [None])[0]
        return getattr(first, "value", "") == "await"

    def mutate(self, node: Any, index: int) -> Any:
        keyword, called = node.children[0].children[:2]
        called.get_first_leaf().prefix = keyword.prefix
        del node.children[0].children[0]
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return (Example("async def f(x):\n    await x()\n", "async def f(x):\n    x()\n"),)


class GuardLeftOut(_OneWay):
    """`if ...: return`, `raise` or `continue` that is forgotten."""

    def matches(self, node: Any) -> bool:
        if node.type != "if_stmt" or len(node.children) != 4:
            return False
        body = node.children[3]
        if body.type != "suite" or len(body.children) != 2:
            return False
        last = body.children[1].children[0]
        return last.type in _GUARD_ENDS or _code(last) in ("return", "continue", "break")

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = parso.parse(" False")
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return (
            Example("if a < b:\n    return 1\n", "if False:\n    return 1\n"),
            Example("if a:\n    return\n", "if False:\n    return\n"),
        )


class ConditionDropped(Operator):  # type: ignore[misc]
    """One operand of `and` or `or` that is forgotten."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type in ("and_test", "or_test"):
            yield from (_position(operand) for operand in node.children[::2])

    def mutate(self, node: Any, index: int) -> Any:
        operands = node.children[::2]
        prefix = node.get_first_leaf().prefix
        del operands[index]
        words = {"and_test": " and ", "or_test": " or "}[node.type]
        return parso.parse(prefix + words.join(_code(operand) for operand in operands))

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return (
            Example("x = a and b", "x = b"),
            Example("x = a and b", "x = a", occurrence=1),
            Example("x = a or b or c", "x = a or c", occurrence=1),
        )


class ErrorToSuccess(_OneWay):
    """An error that is returned or passed on as NONE."""

    def matches(self, node: Any) -> bool:
        if node.type not in ("atom_expr", "power") or not _code(node).startswith("ErrorCode."):
            return False
        above = node.parent.type if node.parent else ""
        is_compared = above in ("comparison", "subscript") or len(node.children) != 2
        return not is_compared and _code(node) != "ErrorCode.NONE"

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1].children[1].value = "NONE"
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return (Example("return ErrorCode.NOT_LEADER", "return ErrorCode.NONE"),)


class OrderSwapped(Operator):  # type: ignore[misc]
    """Two statements with an effect in the wrong order."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "suite":
            for one, other in self._pairs(node):
                yield one.start_pos, other.end_pos

    @staticmethod
    def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
        for one, other in zip(node.children, node.children[1:], strict=False):
            statements = _statement(one), _statement(other)
            has_effects = all(each is not None and _has_effect(each) for each in statements)
            if has_effects and any(map(_is_call, statements)):
                yield one, other

    def mutate(self, node: Any, index: int) -> Any:
        one, other = list(self._pairs(node))[index]
        first, second = node.children.index(one), node.children.index(other)
        node.children[first], node.children[second] = other, one
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return (
            Example("def f(x):\n    x.a = 1\n    x.go()\n", "def f(x):\n    x.go()\n    x.a = 1\n"),
        )


class WrongField(Operator):  # type: ignore[misc]
    """The next field of the same class with the same type. `siblings` has them by field."""

    def __init__(self, siblings: Mapping[str, tuple[str, ...]]) -> None:
        self._siblings = siblings

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "trailer" and len(node.children) == 2 and not self._is_method(node):
            name = getattr(node.children[1], "value", "")
            yield from [_position(node)] * len(self._siblings.get(name, ()))

    @staticmethod
    def _is_method(node: Any) -> bool:
        following = node.get_next_sibling()
        return following is not None and _code(following).startswith("(")

    def mutate(self, node: Any, index: int) -> Any:
        name = node.children[1]
        name.value = self._siblings[name.value][index]
        return node

    @classmethod
    def arguments(cls) -> tuple[Any, ...]:
        return (Argument("siblings", "fields of the same class and type, by field"),)

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        siblings = {"siblings": {"start": ("end",)}}
        return (Example("x = y.start", "x = y.end", operator_args=siblings),)


class HandlerTooNarrow(ExceptionReplacer):  # type: ignore[misc]
    """An exception that its handler omits. cosmic-ray's own operator names one that no module
    imports."""

    def mutate(self, node: Any, index: int) -> Any:
        self._name_nodes(node)[index].value = "ZeroDivisionError"
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        code = "try: go()\nexcept {}: pass"
        return (
            Example(code.format("OSError"), code.format("ZeroDivisionError")),
            Example(code.format("(A, B)"), code.format("(A, ZeroDivisionError)"), occurrence=1),
        )


def fields_of_one_type(sources: list[str]) -> dict[str, tuple[str, ...]]:
    """Annotated field of a class to the fields with the same annotation. A field that several
    classes declare has the fields that it has in all of them."""
    neighbours: dict[str, list[str]] = {}
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                for name, beside in _neighbours(node):
                    known = neighbours.get(name, beside)
                    neighbours[name] = [other for other in known if other in beside]
    return {name: tuple(beside) for name, beside in neighbours.items() if beside}


def _neighbours(node: ast.ClassDef) -> Iterator[tuple[str, list[str]]]:
    for fields in _fields_by_type(node).values():
        for n, name in enumerate(fields):
            yield name, [*fields[max(n - 1, 0) : n], *fields[n + 1 : n + 2]]


def _fields_by_type(node: ast.ClassDef) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields.setdefault(ast.unparse(statement.annotation), []).append(statement.target.id)
    return fields


OWN = (
    StatementLeftOut, StateNotReset, AwaitLeftOut, GuardLeftOut, ConditionDropped, ErrorToSuccess,
    OrderSwapped, HandlerTooNarrow,
)  # fmt: skip
"""Those without arguments."""
