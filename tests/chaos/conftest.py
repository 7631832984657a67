"""Fixtures of the tests of faults."""

from __future__ import annotations

import sys

import pytest

from urteil.chaos.faults import FAULTS


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits return at once: nothing changes in a paper cluster meanwhile."""
    classes = {kind for fault in FAULTS.values() for kind in fault.__mro__}
    for module in {sys.modules[kind.__module__] for kind in classes}:
        if hasattr(module, "until"):
            monkeypatch.setattr(module, "until", lambda read, *_reached, **_times: read())
