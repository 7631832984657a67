"""Spark's operators as native code, for large runs: Apache DataFusion Comet.

Plans, results and the SQL stay Spark's. Comet takes the operators and expressions of a plan that it
has for its own, and leaves the others to Spark; tests compare every answer with DuckDB's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from urteil.harness.dependencies.comet import VERSION

HEAP, OFF_HEAP = "1g", "384m"
"""What the JVM may take, and native operators beside it before they spill."""

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
        # Every small table comes so; without it, all that is joined with one is left to Spark.
        "spark.comet.exec.localTableScan.enabled": "true",
        # Incompatible is that folders of partitions and options of the writer are not Spark's own.
        "spark.comet.write.parquet.enabled": "true",
        "spark.comet.operator.DataWritingCommandExec.allowIncompatible": "true",
    }


def settings_without_comet(why: str) -> dict[str, str]:
    """Settings of a session that should have native operators, and cannot."""
    return {_REPORTED_AS: f"not used: {why}"}


def are_in(settings: Mapping[str, str]) -> bool:
    """Whether a session of these has native operators."""
    return _PLUGINS in settings


def versions(session: Any) -> dict[str, str]:
    """For the `versions` of a result: Comet's, or why a large run goes without."""
    version = session.conf.get(_REPORTED_AS, None)
    return {"comet": version} if version else {}


@contextmanager
def one_arena() -> Iterator[None]:
    """What is started meanwhile takes all memory from one arena of the C library, where nobody
    chose: with one for each thread, 10^7 sends held 0.9 GB more that was free."""
    chosen = _ARENAS in os.environ
    os.environ.setdefault(_ARENAS, "1")
    try:
        yield
    finally:
        if not chosen:
            del os.environ[_ARENAS]
