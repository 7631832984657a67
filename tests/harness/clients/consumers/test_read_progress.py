"""Journals show whether readers have reached the end offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.harness.clients.consumers import read_progress
from urteil.harness.clients.consumers.read_progress import ReadProgress, await_read
from urteil.harness.evidence.journal import Got, JournalWriter, Poll, Slice

SLOT = ("urteil", 0)


def poll(number: int, after: int) -> Poll:
    got = Got(after - 1, "k", "r/p1/1", True, 0, 1)
    return Poll(number, 1, 2, "ok", None, 1, [Slice(*SLOT, 1, 0, after, None, [got])])


@pytest.fixture
def read_end_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_progress, "read_end_offsets", lambda *_: {SLOT: 7, ("urteil", 1): 0})


def test_group_progress_is_that_of_all_members(tmp_path: Path) -> None:
    journals = [tmp_path / "g1.jsonl", tmp_path / "g2.jsonl", tmp_path / "never-started.jsonl"]
    group = ReadProgress(journals)
    with JournalWriter(journals[0]) as first, JournalWriter(journals[1]) as second:
        first.write(poll(1, 5))
        group.follow()
        assert group.reached == {SLOT: 5}
        second.write(poll(1, 7))
        first.write(Poll(2, 1, 2, "ok", None, 1, []))
        group.follow()
    assert group.reached == {SLOT: 7}
    assert not group.is_below({SLOT: 7, ("urteil", 1): 0})


@pytest.mark.usefixtures("read_end_offsets")
def test_reader_without_new_records_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "c1.jsonl"
    with JournalWriter(path) as journal:
        journal.write(poll(1, 5))
        assert not await_read([], [], [ReadProgress([path])], deadline_s=60.0, patience_s=0.3)
        journal.write(poll(2, 7))
        assert await_read([], [], [ReadProgress([path])], deadline_s=60.0)
