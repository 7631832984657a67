"""A source of chance that records its draws, and begins with those of another run.

The simulation is deterministic, so a schedule that repeats the first draws of another one repeats
that run until the first draw that differs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

Draw = float | tuple[int, int]
"""A number below 1, or a number of bits and their value."""


class Draws(random.Random):
    """Draws as `random.Random(seed)` does, after the draws of `first`.

    A draw of another kind than the recorded one ends the repetition. `made` has all draws.
    """

    def __init__(self, seed: int, first: Sequence[Draw] = ()) -> None:
        super().__init__(seed)
        self._first = list(reversed(first))
        self.made: list[Draw] = []

    def random(self) -> float:
        made = self._next_of(float)
        number = made if isinstance(made, float) else super().random()
        self.made.append(number)
        return number

    def getrandbits(self, k: int, /) -> int:
        made = self._next_of(tuple)
        if isinstance(made, tuple) and made[0] == k:
            bits = made[1]
        else:
            self._first.clear()
            bits = super().getrandbits(k)
        self.made.append((k, bits))
        return bits

    def _next_of(self, kind: type) -> Draw | None:
        """The next recorded draw; None, for ever, if there is none of that kind."""
        if self._first and isinstance(self._first[-1], kind):
            return self._first.pop()
        self._first.clear()
        return None
