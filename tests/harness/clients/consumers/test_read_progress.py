"""Readers are followed by their journals to the ends of what they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.harness.clients.consumers import read_progress
from urteil.harness.clients.consumers.read_progress import Reader, await_read
from urteil.harness.evidence.journal import Got, JournalWriter, Poll, Slice

SLOT = ("urteil", 0)


def poll(number: int, after: int) -> Poll:
    got = Got(after - 1, "k", "r/p1/1", True, 0, 1)
    return Poll(number, 1, 2, "ok", None, 1, [Slice(*SLOT, 1, 0, after, None, [got])])


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_progress, "ends", lambda *_: {SLOT: 7, ("urteil", 1): 0})


def test_a_group_is_as_far_as_its_members_are_together(tmp_path: Path) -> None:
    journals = [tmp_path / "g1.jsonl", tmp_path / "g2.jsonl", tmp_path / "never-started.jsonl"]
    group = Reader(journals)
    with JournalWriter(journals[0]) as first, JournalWriter(journals[1]) as second:
        first.write(poll(1, 5))
        group.follow()
        assert group.reached == {SLOT: 5}
        second.write(poll(1, 7))
        first.write(Poll(2, 1, 2, "ok", None, 1, []))
        group.follow()
    assert group.reached == {SLOT: 7}
    assert not group.lacks({SLOT: 7, ("urteil", 1): 0})


@pytest.mark.usefixtures("ends")
def test_who_is_given_nothing_more_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "c1.jsonl"
    with JournalWriter(path) as journal:
        journal.write(poll(1, 5))
        assert not await_read([], [], [Reader([path])], deadline_s=60.0, patience_s=0.3)
        journal.write(poll(2, 7))
        assert await_read([], [], [Reader([path])], deadline_s=60.0)
