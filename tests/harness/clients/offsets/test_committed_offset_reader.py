"""The metadata of commits that a reader compares."""

from __future__ import annotations

from kafka.structs import OffsetAndMetadata

from urteil.harness.clients.offsets.committed_offset_reader import TagOptions, tagged_offset


def test_commits_carry_metadata_and_a_leader_epoch() -> None:
    assert tagged_offset(2018, TagOptions()) == OffsetAndMetadata(2018, "position 2018", 0)
    assert tagged_offset(3001, TagOptions()) == OffsetAndMetadata(3001, "position 3001", 983)


def test_commits_to_older_brokers_carry_no_leader_epoch() -> None:
    tags = TagOptions(commits_epochs=False)
    assert tagged_offset(3001, tags) == OffsetAndMetadata(3001, "position 3001", -1)
