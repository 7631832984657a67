"""The log of the lab's administrative acts: one line for each act in `admin_ops.jsonl`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from urteil.chaos.admin_controls import ActFailed
from urteil.harness.evidence.journal import ADMIN_ACTS


class ActLog:
    """Appends a line when an act has ended. Several threads may act at once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ADMIN_ACTS
        self._lock = threading.Lock()

    @contextmanager
    def act(
        self, act: str, subject: str, before: Mapping[str, Any] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Record an act. The block fills the yielded dictionary, which becomes `after`.

        The outcome is `ok` when the block returns, `info` otherwise: after an error the act may
        still have had an effect.
        """
        after: dict[str, Any] = {}
        row: dict[str, Any] = {"invoke_ns": time.monotonic_ns(), "act": act, "subject": subject}
        outcome = "info"
        try:
            yield after
            outcome = "ok"
        except ActFailed as failure:
            after["failure"] = str(failure)
            raise
        finally:
            row |= {"complete_ns": time.monotonic_ns(), "outcome": outcome}
            row |= {"before": _text(before or {}), "after": _text(after)}
            self._append(row)

    def _append(self, row: Mapping[str, Any]) -> None:
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)
