"""Fixtures that the tests of judgements share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.verify.example_runs import asked_for
from tests.harness.verify.shared_answers import SharedDuck, open_shared
from tests.harness.verify.shared_parts import content_version, write_shared
from urteil.harness.verify import evidence, judgement, part_cache, self_test


@pytest.fixture(autouse=True)
def _shared_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judgements in this process share DuckDB's answers over the same rows, and the parsed content
    of equal part files."""
    monkeypatch.setattr(judgement, "open_engine", open_shared)
    monkeypatch.setattr(self_test, "Duck", SharedDuck)
    monkeypatch.setattr(part_cache, "version", content_version)
    monkeypatch.setattr(evidence, "write_rows", write_shared)


@pytest.fixture
def few() -> Iterator[None]:
    """The promises that the synthetic run itself makes, and two more: enough where a run lacks
    evidence."""
    with asked_for("lost_write", "replica_divergence", "no_progress"):
        yield
