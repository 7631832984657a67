"""One DuckDB for all counts of a process: opening one is slower than counting a tiny run."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import duckdb
import pytest

from urteil.harness.verify.engines.engine import connect
from urteil.harness.verify.rare_states import counting

_NUMBERS = count()


@functools.cache
def shared() -> duckdb.DuckDBPyConnection:
    return connect(Path(tempfile.gettempdir()), threads=1)


@contextmanager
def _own_database(_spill: Path, *, threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database of the shared DuckDB."""
    name = f"counted{next(_NUMBERS)}"
    with shared().cursor() as cursor:
        cursor.execute(f"ATTACH ':memory:' AS {name}")
        cursor.execute(f"USE {name}")
        yield cursor
        cursor.execute("USE memory")
        cursor.execute(f"DETACH {name}")


@pytest.fixture(autouse=True)
def _shared_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "connect", _own_database)
