"""Part files of made-up runs: the same rows are encoded once, the same bytes decoded once.

Most tables of these tests are those of the healthy run. What a judgement computes from a part file
alone is stored under the digest of the file's bytes, for all judgements of one process.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from urteil.harness.verify import evidence

write_rows = evidence.write_rows
_ENCODED: dict[bytes, bytes] = {}
"""A part file by the digest of its schema and rows."""


def write_shared(folder: Path, columns: pa.Schema, table: Iterable[Mapping[str, Any]]) -> None:
    """As `evidence.write_rows`."""
    rows = list(table)
    try:
        content = marshal.dumps([dict(row) for row in rows], 2)
    except ValueError:  # a type that marshal does not write: a test of its own
        write_rows(folder, columns, rows)
        return
    key = digest(str(columns).encode() + content)
    if key not in _ENCODED:
        write_rows(folder, columns, rows)
        _ENCODED[key] = (folder / "part-0.parquet").read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part-0.parquet").write_bytes(_ENCODED[key])


def content_version(part: Path) -> tuple[bytes]:
    """What `part_cache` stores answers under: the digest of the file's bytes."""
    about = os.stat(part)
    return (_digest_of(part, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns),)


@functools.lru_cache(maxsize=4_096)
def _digest_of(part: Path, *_written: int) -> bytes:
    return digest(part.read_bytes())


def digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
