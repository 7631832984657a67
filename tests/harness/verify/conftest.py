"""What the tests of judgements share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.verify.made import asked_for


@pytest.fixture
def few() -> Iterator[None]:
    """What the made-up run itself promises, and two more: enough where a run lacks something."""
    with asked_for("lost_write", "replica_divergence", "no_progress"):
        yield
