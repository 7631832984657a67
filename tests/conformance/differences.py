"""Where two plain answers differ, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

NAMES: Final = (
    "name", "topic", "key", "group_id", "member_id", "resource_name", "api_key",
    "partition_index", "partition", "partition_id", "index", "node_id", "broker_id",
)  # fmt: skip
"""Fields that say which one an element of a list is: the first that it has."""


SHOWN: Final = 160


class Nothing:
    """Stands where one side has a field or an element and the other has none."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = Nothing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`path` are the fields from the outside in, `where` the same with the elements' names."""

    path: str
    where: str
    expected: Any
    answered: Any

    def __str__(self) -> str:
        texts = (_short(self.expected), _short(self.answered))
        return f"{self.where or 'answer'}: {texts[0]} expected, {texts[1]} answered"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < SHOWN else f"{text[:SHOWN]}..."


def differences(
    expected: Any, answered: Any, path: str = "", where: str = ""
) -> Iterator[Difference]:
    """All differences. Lists of named elements are matched by name; another order of them is one
    difference more, at `order`."""
    if isinstance(expected, dict) and isinstance(answered, dict):
        for key in {**expected, **answered}:
            value, other = expected.get(key, NOTHING), answered.get(key, NOTHING)
            yield from differences(value, other, _join_path(path, key), _join_path(where, key))
    elif isinstance(expected, (list, tuple)) and isinstance(answered, (list, tuple)):
        yield from _list_differences(expected, answered, path, where)
    elif expected != answered:
        yield Difference(path=path, where=where, expected=expected, answered=answered)


def _list_differences(
    expected: Sequence[Any], answered: Sequence[Any], path: str, where: str
) -> Iterator[Difference]:
    named, others = _by_name(expected), _by_name(answered)
    if not named or not others:
        if len(expected) != len(answered):
            yield Difference(path=path, where=where, expected=expected, answered=answered)
            return
        named, others = dict(enumerate(expected)), dict(enumerate(answered))
    for key in {**named, **others}:
        value, other = named.get(key, NOTHING), others.get(key, NOTHING)
        yield from differences(value, other, path, f"{where}[{key}]")
    if list(named) != list(others) and set(named) == set(others):
        at = _join_path(path, "order"), _join_path(where, "order")
        yield Difference(path=at[0], where=at[1], expected=list(named), answered=list(others))


def _by_name(elements: Sequence[Any]) -> dict[Any, Any] | None:
    """The elements by name; None where they have none, or two have the same."""
    if not all(isinstance(element, dict) for element in elements):
        return None
    elements_by_name = {
        next((element[key] for key in NAMES if key in element), None): element
        for element in elements
    }
    return (
        elements_by_name
        if len(elements_by_name) == len(elements) and None not in elements_by_name
        else None
    )


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
