"""A source text under construction and its namespace."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from urteil.broker.wire.schema import Message, Struct

FIXED = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
"""Formats of the types whose size does not depend on their value."""


class Source:
    """The lines of one function; the values that it uses get names in its namespace."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.where = f"{message.__name__} v{version}"
        self.version = version
        self.flexible = version >= message.FLEXIBLE_FROM
        self.namespace: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = 0
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def new_variable(self, stem: str) -> str:
        """A new variable name."""
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, stem: str, value: object) -> str:
        """The name of `value` in the function's namespace."""
        name = self.new_variable(stem)
        self.namespace[name] = value
        return name

    def build(self, function: str) -> Any:
        code = compile("\n".join(self._lines), f"<{self.where} {function}>", "exec")
        exec(code, self.namespace)
        return self.namespace[function]


_builders: dict[type[Struct], Any] = {}


def builder(cls: type[Struct]) -> Any:
    """A mutable counterpart of a frozen struct, with the same slots and a plain positional
    `__init__`.

    A frozen dataclass sets each field through `object.__setattr__`; making the twin and giving
    it the frozen class afterwards takes a quarter of the time, and decoding is mostly that.
    """
    if cls not in _builders:
        names = [spec.name for spec in cls.FIELDS]
        lines = [f"def __init__(self, {', '.join(names)}):"]
        lines += [f"    self.{name} = {name}" for name in names] or ["    pass"]
        body: dict[str, Any] = {}
        exec("\n".join(lines), body)
        twin = {"__slots__": tuple(names), "__init__": body["__init__"]}
        _builders[cls] = type(cls.__name__, cls.__bases__, twin)
    return _builders[cls]
