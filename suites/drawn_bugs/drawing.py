"""Draws bugs: the rooms in turn, a random kind of slip, then a random place of it in the room.

So a rare kind (an order swapped) is as frequent as a common one (a number off by one), and each
room has as many bugs as any other.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    unary_operator_replacement,
)

from urteil.suites.drawn_bugs import slips
from urteil.suites.drawn_bugs.bug import DrawnBug, make_bug
from urteil.suites.source_hook import BROKER, relative

ROOMS = (
    "log", "replication", "controller", "groups", "transactions", "api", "quotas", "security",
)  # fmt: skip
"""The folders of the broker whose promises users see."""
_TRIES = 50
_UNCHANGED = ("__repr__", "__str__")

_BOUNDS = (
    "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt",
)  # fmt: skip
_TURNS = (
    "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is", "Lt_GtE", "GtE_Lt", "Gt_LtE", "LtE_Gt",
    "Lt_Gt", "Gt_Lt", "LtE_GtE", "GtE_LtE",
)  # fmt: skip
Make = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Place:
    """The `occurrence`th place of an operator in a file."""

    path: Path
    make: Make
    occurrence: int


def kinds() -> dict[str, list[Make]]:
    """The operators by kind of slip."""
    comparison = comparison_operator_replacement
    arithmetic = binary_operator_replacement
    return {
        "comparison turned": _operators(comparison, "ReplaceComparisonOperator", _TURNS),
        "bound": _operators(comparison, "ReplaceComparisonOperator", _BOUNDS),
        "off by one": [
            number_replacer.NumberReplacer,
            *_operators(arithmetic, "ReplaceBinaryOperator", ("Add_Sub", "Sub_Add")),
        ],
        "condition turned": [
            boolean_replacer.AddNot,
            boolean_replacer.ReplaceAndWithOr,
            boolean_replacer.ReplaceOrWithAnd,
            *_operators(unary_operator_replacement, "ReplaceUnaryOperator", ("Delete_Not",)),
        ],
        "constant turned": [
            boolean_replacer.ReplaceTrueWithFalse,
            boolean_replacer.ReplaceFalseWithTrue,
        ],
        "loop left or continued": [
            break_continue.ReplaceBreakWithContinue,
            break_continue.ReplaceContinueWithBreak,
        ],
        "exception not handled": [slips.HandlerTooNarrow],
        "condition dropped": [slips.ConditionDropped, slips.GuardLeftOut],
        "statement left out": [slips.StatementLeftOut],
        "state not reset": [slips.StateNotReset],
        "await left out": [slips.AwaitLeftOut],
        "error to success": [slips.ErrorToSuccess],
        "order swapped": [slips.OrderSwapped],
        "wrong field": [partial(slips.WrongField, _siblings())],
    }


def _operators(module: Any, prefix: str, names: Sequence[str]) -> list[Make]:
    return [getattr(module, f"{prefix}_{name}") for name in names]


@cache
def _siblings() -> dict[str, tuple[str, ...]]:
    return slips.fields_of_one_type([path.read_text() for path in sorted(BROKER.rglob("*.py"))])


def draw(seed: int, rooms: Sequence[str] = ROOMS) -> Iterator[DrawnBug]:
    """Bugs without end, the rooms in turn, no bug twice. The same seed draws the same bugs of the
    same source."""
    lots = {room: _draw_in_room(room, random.Random(f"{seed}:{room}")) for room in rooms}
    names: set[str] = set()
    while True:
        for room in rooms:
            bug = next(bug for bug in lots[room] if bug.name not in names)
            names.add(bug.name)
            yield bug


def _draw_in_room(room: str, rng: random.Random) -> Iterator[DrawnBug]:
    paths = sorted((BROKER / room).rglob("*.py"))
    places = {kind: _places(paths, makes) for kind, makes in kinds().items()}
    possible = [kind for kind, found in places.items() if found]
    while True:
        kind = rng.choice(possible)
        bug = _bug(room, kind, rng.choice(places[kind]))
        if bug is not None:
            yield bug


def _places(paths: Sequence[Path], makes: Sequence[Make]) -> list[_Place]:
    return [
        _Place(path, make, n)
        for path in paths
        for make in makes
        for n in range(_count(make(), _nodes(path)))
    ]


@cache
def _nodes(path: Path) -> list[Any]:
    return list(_walk(parso.parse(path.read_text())))


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", ()):
        yield from _walk(child)


def _count(operator: Any, nodes: Sequence[Any]) -> int:
    return sum(len(list(operator.mutation_positions(node))) for node in nodes)


def _bug(room: str, kind: str, place: _Place) -> DrawnBug | None:
    """The bug of a place. None where the change is none of code, or not valid Python."""
    source = place.path.read_text()
    changed = MutationVisitor.mutate_code(source, place.make(), place.occurrence)
    if changed is None or changed == source:
        return None
    bug = make_bug(
        room=room, slip=kind, file=relative(place.path), function="", source=source, changed=changed
    )
    function = _function_at(source, bug.line)
    if function is None or function.rpartition(".")[2] in _UNCHANGED:
        return None
    try:
        compile(changed, str(place.path), "exec", dont_inherit=True)
    except SyntaxError:
        return None
    return make_bug(
        room=room,
        slip=kind,
        file=bug.file,
        function=function,
        source=source,
        changed=changed,
    )


def _function_at(source: str, line: int) -> str | None:
    """The function around a line, as `Class.name`; None outside of functions."""
    names: list[str] = []
    nodes: list[ast.stmt] = ast.parse(source).body
    is_inside = False
    while nodes:
        around = next((n for n in nodes if n.lineno <= line <= (n.end_lineno or n.lineno)), None)
        if not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
        is_inside = is_inside or not isinstance(around, ast.ClassDef)
        names.append(around.name)
        nodes = around.body
    return ".".join(names) if is_inside else None
