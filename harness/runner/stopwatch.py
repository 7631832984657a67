"""How long each stage of a run took."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds of named stages, into the dictionary it is given."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self._name = ""
        self._began = 0.0

    def __call__(self, name: str) -> Stopwatch:
        self._name = name
        return self

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        spent = time.monotonic() - self._began
        self.seconds[self._name] = round(self.seconds.get(self._name, 0.0) + spent, 2)
