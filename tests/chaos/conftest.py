"""Fixtures of the tests of faults."""

from __future__ import annotations

import sys

import pytest

from urteil.chaos.faults import FAULTS


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits return at once: nothing changes in a paper cluster meanwhile."""
    for module in {sys.modules[fault.__module__] for fault in FAULTS.values()}:
        if hasattr(module, "until"):
            monkeypatch.setattr(module, "until", lambda read, *_reached, **_times: read())
