"""Copies of folders that grow elsewhere: appended, truncated, replaced and removed files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure
from urteil.harness.runtimes.hosts.followed_folders import (
    TAIL_BYTES,
    Change,
    FollowedFolder,
    Version,
    await_changes,
)
from urteil.harness.runtimes.hosts.messages import CHUNK_BYTES


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


@pytest.fixture
def copy(tmp_path: Path, source: Path) -> Iterator[Path]:
    followed = FollowedFolder(partial(await_changes, source), tmp_path / "copy")
    followed.start()
    yield tmp_path / "copy"
    followed.close()
    assert not (tmp_path / "copy").exists()


def await_equal(copy: Path, source: Path) -> None:
    until(lambda: contents(copy) == contents(source), lambda: f"{contents(copy)}")


def contents(folder: Path) -> dict[str, bytes]:
    """A file may go meanwhile."""
    read = dict[str, bytes]()
    for file in folder.glob("*"):
        if file.suffix not in (".index", ".part"):
            with suppress(FileNotFoundError):
                read[file.name] = file.read_bytes()
    return read


def test_copy_follows_a_log(source: Path, copy: Path) -> None:
    source.mkdir()
    log = source / "0.log"
    log.write_bytes(b"first")
    (source / "0.index").write_bytes(bytes(10))
    await_equal(copy, source)
    with log.open("ab") as file:
        file.write(bytes(3 * CHUNK_BYTES))
    await_equal(copy, source)
    os.truncate(log, 2)
    await_equal(copy, source)
    log.unlink()
    await_equal(copy, source)


def test_copy_follows_a_replaced_file(source: Path, copy: Path) -> None:
    source.mkdir()
    for text in ("epoch 1", "epoch 2", "epoch 10"):
        (source / "part").write_text(text)
        (source / "part").replace(source / "quorum-state")
        await_equal(copy, source)


def test_copy_follows_a_folder_that_is_replaced(source: Path, copy: Path) -> None:
    for content in (b"first", b"second"):
        source.mkdir()
        (source / "0.log").write_bytes(content)
        await_equal(copy, source)
        shutil.rmtree(source)
        await_equal(copy, source)


def test_copy_goes_on_after_a_failure(source: Path, tmp_path: Path) -> None:
    source.mkdir()
    (source / "0.log").write_bytes(b"first")
    failures = [LabFailure("busy"), LabFailure("busy")]

    def read(known: Mapping[str, Version]) -> list[Change]:
        if failures:
            raise failures.pop()
        return await_changes(source, known)

    followed = FollowedFolder(read, tmp_path / "copy")
    followed.start()
    await_equal(tmp_path / "copy", source)
    followed.close()


def test_log_that_was_truncated_and_grew_again_is_sent_anew(source: Path) -> None:
    source.mkdir()
    log = source / "0.log"
    log.write_bytes(bytes(TAIL_BYTES) + b"old epoch")
    (first,) = await_changes(source, {})
    assert first.version is not None
    known = {first.name: first.version}
    with log.open("ab") as file:
        file.write(b", and more")
    (appended,) = await_changes(source, known)
    assert (appended.start, appended.content) == (TAIL_BYTES + 9, b", and more")
    os.truncate(log, TAIL_BYTES)
    with log.open("ab") as file:
        file.write(b"new epoch, which is longer")
    (anew,) = await_changes(source, known)
    assert (anew.start, anew.content) == (0, log.read_bytes())
