"""The quota of controller mutations of one request (KIP-599)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class MutationThrottle(Protocol):
    """The counter of mutations by user and client id (`quotas.throttle.Throttle`)."""

    def change(self, user: str, client_id: str, partitions: int) -> None: ...

    def debt_ms(self, user: str, client_id: str) -> int | None: ...


class Mutations:
    """Counts the partitions that a request creates and deletes.

    If `is_strict`, a mutation during a debt is rejected. Older clients do not know that error; they
    only receive the throttle time `wait_ms`.
    """

    def __init__(
        self, throttle: MutationThrottle, user: str, client_id: str, *, is_strict: bool
    ) -> None:
        self._throttle = throttle
        self._who = (user, client_id)
        self._is_strict = is_strict
        self.wait_ms = 0

    def take(self, partitions: int) -> bool:
        """Count mutations; return whether they are allowed."""
        if self._is_strict and self._is_in_debt():
            return False
        self._throttle.change(*self._who, partitions)
        if not self._is_strict:
            self._is_in_debt()
        return True

    def _is_in_debt(self) -> bool:
        debt_ms = self._throttle.debt_ms(*self._who)
        self.wait_ms = max(self.wait_ms, debt_ms or 0)
        return debt_ms is not None


Take = Callable[[int], bool]
"""Counts partitions; returns whether they may be created or deleted now."""


def allow_all(_partitions: int) -> bool:
    """Allow all mutations."""
    return True
