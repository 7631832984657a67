"""What a run's plots show, as plain lists: aggregated by DuckDB, thinned to what a screen can show.

All times are seconds since the first send was invoked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

BUCKETS = 240
NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A stretch of one partition's life with one leader, epoch and ISR."""

    lane: str
    begin_s: float
    end_s: float
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """`throughput` maps an outcome to records/s a bucket, `latency_ms` a name to ms a bucket."""

    origin_ns: int
    end_s: float
    bucket_s: float
    at_s: list[float] = field(default_factory=list)
    throughput: dict[str, list[float]] = field(default_factory=dict)
    latency_ms: dict[str, list[float | None]] = field(default_factory=dict)
    bands: list[Band] = field(default_factory=list)

    def seconds(self, at_ns: int) -> float:
        return (at_ns - self.origin_ns) / NS


def load_series(run_dir: Path) -> Series | None:
    """The series of a run, or None when it has no sends to draw."""
    with duckdb.connect(config={"threads": 2}) as db:
        sends = _table(db, run_dir, "sends")
        span = None
        if sends:
            span = db.execute(
                "SELECT min(invoke_ns), max(coalesce(complete_ns, invoke_ns)) FROM sends"
            ).fetchone()
        if span is None or span[0] is None:
            return None
        origin, last = span
        bucket_s = max(0.25, round((last - origin) / NS / BUCKETS, 2))
        buckets = int((last - origin) / NS / bucket_s) + 1
        series = Series(
            origin_ns=origin,
            end_s=(last - origin) / NS,
            bucket_s=bucket_s,
            at_s=[(n + 0.5) * bucket_s for n in range(buckets)],
        )
        _throughput(db, series, buckets)
        _latency(db, series, buckets)
        if _table(db, run_dir, "states"):
            series.bands.extend(_bands(db, series))
        return series


def _table(db: duckdb.DuckDBPyConnection, run_dir: Path, name: str) -> bool:
    """Make `name` a view on the run's part files; False when there are none."""
    parts = sorted((run_dir / "evidence" / name).glob("*.parquet"))
    if parts:
        files = ", ".join("'" + str(part).replace("'", "''") + "'" for part in parts)
        db.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{files}])")
    return bool(parts)


def _throughput(db: duckdb.DuckDBPyConnection, series: Series, buckets: int) -> None:
    for outcome in ("ok", "fail", "info"):
        series.throughput[outcome] = [0.0] * buckets
    rows = db.execute(
        "SELECT outcome, CAST((coalesce(complete_ns, invoke_ns) - ?) // ? AS INTEGER), count(*) "
        "FROM sends GROUP BY 1, 2",
        [series.origin_ns, int(series.bucket_s * NS)],
    ).fetchall()
    for outcome, bucket, count in rows:
        if outcome in series.throughput and 0 <= bucket < buckets:
            series.throughput[outcome][bucket] = count / series.bucket_s


def _latency(db: duckdb.DuckDBPyConnection, series: Series, buckets: int) -> None:
    names = ("p50", "p99", "max")
    for name in names:
        series.latency_ms[name] = [None] * buckets
    rows = db.execute(
        "SELECT CAST((complete_ns - ?) // ? AS INTEGER), "
        "quantile_cont((complete_ns - invoke_ns) / 1e6, 0.5), "
        "quantile_cont((complete_ns - invoke_ns) / 1e6, 0.99), "
        "max((complete_ns - invoke_ns) / 1e6) "
        "FROM sends WHERE outcome = 'ok' AND complete_ns IS NOT NULL GROUP BY 1",
        [series.origin_ns, int(series.bucket_s * NS)],
    ).fetchall()
    for bucket, *values in rows:
        if 0 <= bucket < buckets:
            for name, value in zip(names, values, strict=True):
                series.latency_ms[name][bucket] = value


def _bands(db: duckdb.DuckDBPyConnection, series: Series) -> list[Band]:
    rows = db.execute(
        "SELECT topic, partition, at_ns, leader, leader_epoch, isr, "
        "lead(at_ns) OVER (PARTITION BY topic_id, topic, partition ORDER BY zxid) AS until_ns "
        "FROM states WHERE partition IS NOT NULL AND isr IS NOT NULL "
        "AND topic IN (SELECT DISTINCT topic FROM sends) ORDER BY topic, partition, zxid"
    ).fetchall()
    widest: dict[str, int] = {}
    bands = []
    for topic, partition, at_ns, leader, epoch, isr_json, until_ns in rows:
        lane, isr = f"{topic}-{partition}", tuple(_brokers(isr_json))
        widest[lane] = max(widest.get(lane, 0), len(isr))
        begin = max(0.0, series.seconds(at_ns))
        end = series.end_s if until_ns is None else min(series.end_s, series.seconds(until_ns))
        if end > begin:
            bands.append((lane, begin, end, leader, epoch, isr))
    return [
        Band(
            lane=lane,
            begin_s=begin,
            end_s=end,
            leader=-1 if leader is None else leader,
            leader_epoch=-1 if epoch is None else epoch,
            isr=isr,
            replicas=widest[lane],
        )
        for lane, begin, end, leader, epoch, isr in bands
    ]


def _brokers(isr_json: str) -> list[int]:
    found: Any = json.loads(isr_json)
    return [int(broker) for broker in found]
