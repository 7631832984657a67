"""What the file sink and a checkpoint of Spark say about committed batches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from urteil.harness.clients.applications.ingestion import LAKE, QUERIES
from urteil.harness.clients.applications.programs.spark_queries import CHECKPOINT, FILES
from urteil.harness.clients.applications.spark_application import (
    JOB,
    committed_positions,
    lacking_batch,
    listed_files,
    read_files,
    remove_checkpoints,
)


def write(path: Path, *lines: str) -> None:
    """A file of these lines, in a folder that is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))


def entry(folder: Path, name: str) -> str:
    return f'{{"path":"{(folder / name).as_uri()}","size":1,"action":"add"}}'


def test_compacted_log_replaces_earlier_batches(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    write(log / "8", "v1", entry(tmp_path, "a.json"))
    write(log / "9.compact", "v1", entry(tmp_path, "a.json"), entry(tmp_path, "b.json"))
    write(log / "10", "v1", entry(tmp_path, "c d.json"))
    assert [path.name for path in listed_files(tmp_path)] == ["a.json", "b.json", "c d.json"]


def test_file_of_an_uncommitted_batch_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "_spark_metadata" / "0", "v1", entry(tmp_path, "a.json"))
    write(tmp_path / "a.json", '{"key":"r/p1/0","value":"k0"}', '{"key":"r/p1/1","value":"k1"}')
    write(tmp_path / "remains.json", '{"key":"r/p1/0","value":"k0"}')
    rows = [(row.position, row.key, row.value) for row in read_files(tmp_path, "lake")]
    assert rows == [(0, "r/p1/0", "k0"), (1, "r/p1/1", "k1")]


def test_log_of_another_format_is_rejected(tmp_path: Path) -> None:
    write(tmp_path / "_spark_metadata" / "0", "v2")
    with pytest.raises(ValueError, match="not a log of Spark's file sink"):
        listed_files(tmp_path)


def test_position_is_that_of_the_last_committed_batch(tmp_path: Path) -> None:
    for batch, end in ((9, 40), (10, 55), (11, 70)):
        write(tmp_path / "offsets" / str(batch), "v1", "{}", f'{{"in":{{"0":{end},"1":7}}}}')
    for batch in (9, 10):
        write(tmp_path / "commits" / str(batch), "v1", "{}")
    assert committed_positions(tmp_path) == {("in", 0): 55, ("in", 1): 7}


def test_query_without_a_committed_batch_has_no_position(tmp_path: Path) -> None:
    assert committed_positions(tmp_path) == {}


def begin(folder: Path, at_s: int) -> None:
    write(folder / JOB, "{}")
    os.utime(folder / JOB, (at_s, at_s))


def commit(folder: Path, at_s: int) -> None:
    path = folder / LAKE / CHECKPOINT / "commits" / "0"
    write(path, "v1", "{}")
    os.utime(path, (at_s, at_s))


@pytest.mark.parametrize("unread", [0, 3])
def test_session_is_ready_after_its_first_batch_even_without_records(
    tmp_path: Path, unread: int
) -> None:
    begin(tmp_path, 10)
    assert lacking_batch(tmp_path, QUERIES, lambda _: unread) == "it has committed no batch of lake"
    commit(tmp_path, 11)
    assert lacking_batch(tmp_path, QUERIES, lambda _: unread) == ""


def test_later_session_is_ready_by_batch_or_without_unread_records(
    tmp_path: Path,
) -> None:
    commit(tmp_path, 9)
    begin(tmp_path, 10)
    assert lacking_batch(tmp_path, QUERIES, lambda _: 3) == "it has committed no batch of lake"
    assert lacking_batch(tmp_path, QUERIES, lambda _: 0) == ""
    commit(tmp_path, 11)
    assert lacking_batch(tmp_path, QUERIES, lambda _: 3) == ""


def test_forgetful_session_keeps_the_files_alone(tmp_path: Path) -> None:
    write(tmp_path / LAKE / CHECKPOINT / "commits" / "0", "v1", "{}")
    write(tmp_path / LAKE / FILES / "_spark_metadata" / "0", "v1")
    remove_checkpoints(tmp_path, QUERIES)
    assert [path.name for path in (tmp_path / LAKE).iterdir()] == [FILES]
