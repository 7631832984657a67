"""Whether the reads and writes of one register are linearizable. Cost follows the operations.

Just-in-time linearization: operations are processed in the order of their completions, and every
possible state of the register is kept. A write of unknown outcome may take effect at any time after
its invocation, or never; it is left out if no later read returned its value, since leaving it out
never makes a history worse. A read takes effect as soon as the register holds its value: it changes
nothing, so earlier is never worse.
Source: G. Lowe, Testing for Linearizability (2017).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

STATES_MAX = 4_096

Value = int | None
State = tuple[Value, frozenset[int]]
"""What the register holds, and which of the open operations took effect already."""


@dataclass(frozen=True, slots=True)
class Op:
    """A read or a write. `complete_ns` is infinite for a write of unknown outcome."""

    invoke_ns: int
    complete_ns: float
    value: Value
    is_read: bool = False

    @property
    def is_complete(self) -> bool:
        return self.complete_ns != math.inf


class TooMany(Exception):
    """More states are possible than are followed: nothing is said of this register."""


@dataclass(slots=True)
class _Register:
    """All states that are possible after the operations so far, and what is open."""

    states: set[State]
    writes: dict[int, Value] = field(default_factory=dict)
    reads: dict[int, Value] = field(default_factory=dict)

    def begin(self, number: int, op: Op) -> None:
        (self.reads if op.is_read else self.writes)[number] = op.value
        if op.is_read:
            self.states = {self._with_reads(value, done) for value, done in self.states}

    def end(self, number: int, op: Op) -> bool:
        """Whether the operation can have taken effect by now; a read that cannot is believed."""
        if op.is_complete:
            self.states = self._reachable()
        able = (
            {state for state in self.states if number in state[1]}
            if op.is_complete
            else self.states
        )
        fits = bool(able)
        (self.reads if op.is_read else self.writes).pop(number)
        after = able or {(op.value, done) for _, done in self.states}
        self.states = {self._with_reads(value, done - {number}) for value, done in after}
        return fits

    def _with_reads(self, value: Value, done: Iterable[int]) -> State:
        return value, frozenset(done) | {n for n, read in self.reads.items() if read == value}

    def _reachable(self) -> set[State]:
        """Every state that open writes can lead to, the present ones among them."""
        states, fresh = set(self.states), list(self.states)
        while fresh:
            _, done = fresh.pop()
            for number in self.writes.keys() - done:
                state = self._with_reads(self.writes[number], done | {number})
                if state not in states:
                    states.add(state)
                    fresh.append(state)
            if len(states) > STATES_MAX:
                raise TooMany
        return states


def broken_reads(ops: Sequence[Op], initial: Value = None) -> list[Op]:
    """The reads that no order explains, each judged as if those before it had been right.

    Raises TooMany.
    """
    last_read: dict[Value, float] = {}
    for op in ops:
        if op.is_read:
            last_read[op.value] = max(op.complete_ns, last_read.get(op.value, 0))
    register = _Register({(initial, frozenset())})
    reads = []
    for _, ends, number in _events(ops, last_read):
        op = ops[number]
        if not ends:
            register.begin(number, op)
        elif not register.end(number, op):
            reads.append(op)
    return reads


def _events(ops: Sequence[Op], last_read: dict[Value, float]) -> list[tuple[float, bool, int]]:
    """Invocations and completions in order. A write of unknown outcome ends when its value was
    read for the last time, and is left out if that was before it began."""
    events: list[tuple[float, bool, int]] = []
    for number, op in enumerate(ops):
        end_ns = op.complete_ns if op.is_complete else last_read.get(op.value, 0) + 1
        if op.is_complete or end_ns > op.invoke_ns:
            events += [(float(op.invoke_ns), False, number), (end_ns, True, number)]
    return sorted(events)
