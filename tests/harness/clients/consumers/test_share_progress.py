"""A share group is drained when its members' journals show no delivery for a while."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.clients.consumers.share_progress import ShareProgress
from urteil.harness.evidence.journal import Acknowledge, Delivered, JournalWriter, Poll


def test_deliveries_to_all_members_count_and_nothing_else(tmp_path: Path) -> None:
    journals = [tmp_path / name for name in ("s1.jsonl", "s2.jsonl", "never-started.jsonl")]
    progress = ShareProgress(journals)
    with JournalWriter(journals[0]) as first, JournalWriter(journals[1]) as second:
        first.write(Delivered(1, 1, 2, "g", []))
        assert progress.deliveries() == 1
        first.write(Acknowledge(3, []))
        first.write(Poll(2, 4, 5, "ok", None, None, []))
        assert progress.deliveries() == 1
        second.write(Delivered(1, 1, 2, "g", []))
        assert progress.deliveries() == 2
