"""The checker of registers against a search through every order, on small histories."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from urteil.harness.verify.linearizability import Op, Value, broken_reads


def write(invoke: int, complete: float, value: Value) -> Op:
    return Op(invoke, complete, value)


def read(invoke: int, complete: float, value: Value) -> Op:
    return Op(invoke, complete, value, is_read=True)


def explained(ops: list[Op]) -> bool:
    """Whether some order of the operations, respecting real time, explains every read."""
    known = [op for op in ops if op.is_complete]
    unknown = [op for op in ops if not op.is_complete]
    chosen = itertools.chain.from_iterable(
        itertools.combinations(unknown, n) for n in range(len(unknown) + 1)
    )
    return any(_ordered([*known, *extra]) for extra in chosen)


def _ordered(ops: list[Op], value: Value = None) -> bool:
    if not ops:
        return True
    first_end = min(op.complete_ns for op in ops)
    for op in ops:
        if op.invoke_ns > first_end or (op.is_read and op.value != value):
            continue
        rest = [other for other in ops if other is not op]
        if _ordered(rest, value if op.is_read else op.value):
            return True
    return False


@st.composite
def histories(draw: st.DrawFn) -> list[Op]:
    times = draw(st.permutations(range(1, 13)))
    ops = []
    for begin, end in zip(times[::2], times[1::2], strict=True):
        low, high = sorted((begin, end))
        is_read = draw(st.booleans())
        unknown = not is_read and draw(st.integers(0, 3)) == 0
        value = draw(st.sampled_from([None, 1, 2] if is_read else [1, 2, 3]))
        ops.append(Op(low, math.inf if unknown else high, value, is_read))
    return ops


@given(histories())
@settings(max_examples=400, deadline=None)
def test_linearizability_agrees_with_an_exhaustive_search(ops: list[Op]) -> None:
    assert (broken_reads(ops) == []) == explained(ops)


def test_read_during_a_write_may_return_either_value() -> None:
    ops = [write(1, 2, 5), write(3, 6, 7), read(4, 8, 5), read(5, 7, 7)]
    assert broken_reads(ops) == []
    assert broken_reads([*ops, read(9, 10, 5)]) == [read(9, 10, 5)]


def test_an_unknown_write_may_take_effect_late_or_never() -> None:
    ops = [write(1, math.inf, 5), write(2, 3, 7), read(4, 5, 7), read(6, 7, 5)]
    assert broken_reads(ops) == []
    assert broken_reads([*ops, read(8, 9, 7)]) == [read(8, 9, 7)]


def test_many_operations_cost_no_more_than_their_rows() -> None:
    ops = []
    for n in range(50_000):
        ops += [write(10 * n, 10 * n + 4, n), write(10 * n + 5, math.inf, -n)]
        if n % 100 == 0:
            ops.append(read(10 * n + 6, 10 * n + 7, n))
    assert broken_reads(ops) == []
