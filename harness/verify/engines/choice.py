"""The choice of the engine that judges a run, with its reason.

`auto` takes DuckDB, which starts at once, unless Spark is needed: for a master that the caller
names, for evidence on a network file system, for a scenario that declares Spark, and for more rows
than DuckDB judges faster. The verdict is the same on both engines.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from urteil.harness.dependencies.pyspark import pyspark_folder

AUTO = "auto"
ENGINES = ("duckdb", "spark")
CHOICES = (AUTO, *ENGINES)

SPARK_ROWS = 60_000_000
"""From this many rows of sends, reads and replicas on, `auto` takes Spark.

Measured with `bench/verify.py` (docs/results/bench.md): DuckDB needs half of Spark's time at
50 million rows, the largest history that both were timed with. With more rows, DuckDB splits
queries into more parts, each of which reads all rows, so its time grows faster than the rows."""

NETWORK_FILE_SYSTEMS = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"}
    | {"nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "smb2", "smb3", "smbfs"}
)
LOCAL_FUSE = frozenset(
    {"fuse.bindfs", "fuse.encfs", "fuse.fuse-overlayfs", "fuse.gocryptfs", "fuse.mergerfs"}
    | {"fuse.ntfs-3g", "fuse.squashfuse", "fuse.unionfs", "fuse.vmhgfs-fuse"}
)
"""FUSE file systems whose files are on this machine; the others are a bucket or another host."""


def check_master(engine: str, master: str | None) -> None:
    """Raises ValueError for a Spark master with another engine."""
    if master is not None and engine not in (AUTO, "spark"):
        raise ValueError(
            f"--engine {engine} judges in this process and uses no Spark master: leave out "
            f"--master {master}, or use --engine spark"
        )


class Choice(NamedTuple):
    engine: str
    reason: str


def choose(
    requested: str,
    run_dir: Path,
    *,
    master: str | None = None,
    session: Any = None,
    declared: str = AUTO,
    scenario: str = "",
) -> Choice:
    """Choose the engine for the run in `run_dir`: the `requested` one, or the choice of `auto`.

    `declared` is the engine that the run's `scenario` names. Raises ValueError for an unknown
    engine, and for a `master` with another engine than Spark.
    """
    check_master(requested, master)
    for engine in (requested, declared):
        if engine not in CHOICES:
            raise ValueError(f"no engine named {engine}: {', '.join(CHOICES)}")
    if requested != AUTO:
        return Choice(requested, "requested")
    if master is not None:
        return Choice("spark", f"--master {master}")
    if session is not None and declared == AUTO:
        return Choice("spark", "the caller's session")
    if declared == "duckdb":
        return Choice(declared, f"the scenario {scenario} declares it")
    reason = f"the scenario {scenario} declares it" if declared == "spark" else None
    reason = reason or _remote(run_dir) or _many_rows(run_dir)
    if reason is None:
        return Choice("duckdb", f"{_rows(run_dir):,} rows of evidence, Spark from {SPARK_ROWS:,}")
    if session is None and pyspark_folder() is None:
        return Choice("duckdb", f"Spark is not installed; it would judge: {reason}")
    return Choice("spark", reason)


def needs_spark(requested: str, *, master: str | None, declared: str) -> bool:
    """Whether Spark is chosen for any evidence, so that it can start before the judgement."""
    if requested != AUTO:
        return requested == "spark"
    if master is not None:
        return True
    return declared == "spark" and pyspark_folder() is not None


def _many_rows(run_dir: Path) -> str | None:
    rows = _rows(run_dir)
    return f"{rows:,} rows of evidence, DuckDB below {SPARK_ROWS:,}" if rows >= SPARK_ROWS else None


def _rows(run_dir: Path) -> int:
    """Rows of the large tables. Damaged files count as empty; the judgement reports them."""
    import pyarrow as pa

    from urteil.harness.verify import evidence

    rows = 0
    for table in ("sends", "reads", "replicas"):
        with suppress(OSError, pa.ArrowException):
            rows += evidence.row_count(run_dir, table)
    return rows


def _remote(run_dir: Path) -> str | None:
    """Why the evidence is not on this machine; None if it is."""
    kind = file_system(run_dir / "evidence")
    is_fuse = kind.startswith("fuse.") and kind not in LOCAL_FUSE
    return f"the evidence is on {kind}" if is_fuse or kind in NETWORK_FILE_SYSTEMS else None


def file_system(path: Path) -> str:
    """The type of the file system that holds `path`, as the mount table names it."""
    import psutil

    where = path.resolve()
    mounts = [
        mount
        for mount in psutil.disk_partitions(all=True)
        if where.is_relative_to(Path(mount.mountpoint))
    ]
    mounts.reverse()  # of two mounts on one path, the later one is visible
    return max(mounts, key=lambda mount: len(Path(mount.mountpoint).parts)).fstype if mounts else ""
