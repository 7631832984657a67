"""Spark's operators as native code, for large runs: Apache DataFusion Comet.

Plans, results and the SQL stay Spark's. Comet executes the operators and expressions that it
implements; Spark executes the others. Tests compare the result of every query with DuckDB's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from urteil.harness.dependencies.comet import VERSION

HEAP, OFF_HEAP = "1g", "384m"
"""The memory of the JVM, and that of native operators before they spill."""

_SHUFFLE = "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
_ARENAS = "MALLOC_ARENA_MAX"
_PLUGINS, _REPORTED_AS = "spark.plugins", "spark.urteil.comet"


def settings(jar: Path) -> dict[str, str]:
    """Settings of a session on this machine that uses `jar`."""
    return {
        "spark.driver.extraClassPath": str(jar),
        _PLUGINS: "org.apache.spark.CometPlugin",
        _REPORTED_AS: VERSION,
        "spark.shuffle.manager": _SHUFFLE,
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": OFF_HEAP,
        # Small tables are local scans; without this, Spark executes all joins with them.
        "spark.comet.exec.localTableScan.enabled": "true",
        # "Incompatible" means other names of partition folders and other options of the writer.
        "spark.comet.write.parquet.enabled": "true",
        "spark.comet.operator.DataWritingCommandExec.allowIncompatible": "true",
    }


def settings_without_comet(why: str) -> dict[str, str]:
    """Settings of a session without native operators although the run is large, with the reason."""
    return {_REPORTED_AS: f"not used: {why}"}


def are_in(settings: Mapping[str, str]) -> bool:
    """Whether a session with these settings has native operators."""
    return _PLUGINS in settings


def versions(session: Any) -> dict[str, str]:
    """Comet's version for `versions` in a result, or why a large run does not use it."""
    version = session.conf.get(_REPORTED_AS, None)
    return {"comet": version} if version else {}


@contextmanager
def one_arena() -> Iterator[None]:
    """Limit processes that are started meanwhile to one malloc arena, unless the environment sets
    a number. With an arena for each thread, a run of 10^7 sends kept 0.9 GB more free memory."""
    chosen = _ARENAS in os.environ
    os.environ.setdefault(_ARENAS, "1")
    try:
        yield
    finally:
        if not chosen:
            del os.environ[_ARENAS]
