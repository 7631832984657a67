"""The values of a run's plots as plain lists, aggregated by DuckDB into at most BUCKETS buckets.

All times are seconds since the first send was invoked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from urteil.harness.verify.result import FaultResult
from urteil.reports.evidence_views import NS, EvidenceViews

BUCKETS = 300
OUTCOMES = ("ok", "fail", "info")
QUANTILES = ("p50", "p99", "p99.9", "max")
FEWEST = 3
"""A curve with values in fewer buckets is left out."""
LARGEST = 12
"""Maximum number of readers, and of partitions, that are drawn."""

Values = list[float | None]

LATENCIES = {
    "sends": ("complete_ns", "complete_ns - invoke_ns", "sends WHERE outcome = 'ok'"),
    "polls": ("complete_ns", "complete_ns - invoke_ns", "polls WHERE outcome = 'ok'"),
    "commits of groups": ("complete_ns", "complete_ns - invoke_ns", "commits WHERE outcome = 'ok'"),
    "acknowledgements of share groups": (
        "complete_ns",
        "complete_ns - invoke_ns",
        "deliveries WHERE outcome = 'ok'",
    ),
    "transactions": ("end_ns", "end_ns - begin_ns", "txns WHERE outcome = 'committed'"),
    "questions for offsets": (
        "complete_ns",
        "complete_ns - invoke_ns",
        "offset_answers WHERE error IS NULL",
    ),
}
"""Kind of operation: SQL of its end, its length and its rows."""


PLACE = "coalesce(topic, topic_id, '?') || '-' || coalesce(CAST(partition AS VARCHAR), '?')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """The longest time that one partition acknowledged nothing, between two acknowledgements."""

    place: str
    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The curves over one axis: `at_s` holds the middles of buckets of `bucket_s`.

    `throughput` maps an outcome (and `read`) to records/s in each bucket, `latency_ms` a kind of
    operation to its quantiles, `lag` a reader to the records acknowledged and not yet read, and
    `acknowledged` a partition to its highest acknowledged offset plus one, which is a lower bound
    of its high watermark.
    """

    origin_ns: int
    end_s: float
    bucket_s: float
    at_s: list[float] = field(default_factory=list)
    throughput: dict[str, list[float]] = field(default_factory=dict)
    latency_ms: dict[str, dict[str, Values]] = field(default_factory=dict)
    lag: dict[str, Values] = field(default_factory=dict)
    acknowledged: dict[str, Values] = field(default_factory=dict)
    stall: Stall | None = None

    def seconds(self, at_ns: int) -> float:
        return (at_ns - self.origin_ns) / NS


def load_series(run: EvidenceViews, faults: Sequence[FaultResult] = ()) -> Series | None:
    """The series of a run, or None when nothing in the run has a time."""
    origin, last = _span(run, faults)
    if origin is None or last is None:
        return None
    bucket_s = max(0.1, (last - origin) / NS / BUCKETS)
    buckets = int((last - origin) / NS / bucket_s) + 1
    series = Series(
        origin_ns=origin,
        end_s=(last - origin) / NS,
        bucket_s=bucket_s,
        at_s=[(n + 0.5) * bucket_s for n in range(buckets)],
        stall=_stall(run, origin),
    )
    _throughput(run, series)
    for kind, (when, lasted, rows) in LATENCIES.items():
        _latency(run, series, kind, when, lasted, rows)
    _progress(run, series)
    return series


def _span(run: EvidenceViews, faults: Sequence[FaultResult]) -> tuple[int | None, int | None]:
    """From the first send (or read, or fault) to the last completion or healing."""
    query = "SELECT min(invoke_ns), max(coalesce(complete_ns, invoke_ns)) FROM sends"
    origin, last = run.rows(query)[0]
    if origin is None:
        origin, last = run.rows("SELECT min(read_ns), max(read_ns) FROM reads")[0]
    healed = [fault.healed_ns or fault.end_ns for fault in faults]
    if origin is None:
        origin = min((fault.begin_ns for fault in faults), default=None)
    return origin, max([last, *healed] if last is not None else healed, default=None)


def _bucket(series: Series, when: str) -> str:
    return f"CAST(({when} - {series.origin_ns}) // {int(series.bucket_s * NS)} AS INTEGER)"


def _throughput(run: EvidenceViews, series: Series) -> None:
    buckets = len(series.at_s)
    sent = _bucket(series, "coalesce(complete_ns, invoke_ns)")
    rows = run.rows(f"SELECT outcome, {sent}, count(*) FROM sends GROUP BY 1, 2")
    received = "(SELECT read_ns FROM reads UNION ALL SELECT read_ns FROM deliveries)"
    read = _bucket(series, "read_ns")
    rows += run.rows(f"SELECT 'read', {read}, count(*) FROM {received} GROUP BY 2")
    for name in (*OUTCOMES, "read"):
        series.throughput[name] = [0.0] * buckets
    for name, bucket, count in rows:
        if name in series.throughput and bucket is not None and 0 <= bucket < buckets:
            series.throughput[name][bucket] = count / series.bucket_s


def _latency(
    run: EvidenceViews, series: Series, kind: str, when: str, lasted: str, rows: str
) -> None:
    measured = run.rows(
        f"SELECT {_bucket(series, when)}, quantile_cont(({lasted}) / 1e6, [0.5, 0.99, 0.999]), "
        f"max(({lasted}) / 1e6) FROM {rows} AND {when} IS NOT NULL GROUP BY 1"
    )
    buckets = len(series.at_s)
    inside = [row for row in measured if row[0] is not None and 0 <= row[0] < buckets]
    if len(inside) < FEWEST:
        return
    values: dict[str, Values] = {name: [None] * buckets for name in QUANTILES}
    for bucket, quantiles, largest in inside:
        for name, value in zip(QUANTILES, [*quantiles, largest], strict=True):
            values[name][bucket] = None if value is None else round(max(value, 0.001), 3)
    series.latency_ms[kind] = values


def _stall(run: EvidenceViews, origin: int) -> Stall | None:
    """The longest interval between two acknowledgements of one partition, in ticks of 10 ms."""
    rows = run.rows(
        f"SELECT place, before, lo FROM (SELECT place, lo, lag(hi) OVER (PARTITION BY place "
        f"ORDER BY tick) AS before FROM (SELECT {PLACE} AS place, complete_ns // 10000000 AS tick, "
        "min(complete_ns) AS lo, max(complete_ns) AS hi FROM sends "
        "WHERE outcome = 'ok' AND complete_ns IS NOT NULL GROUP BY 1, 2)) "
        "WHERE before IS NOT NULL ORDER BY lo - before DESC, place LIMIT 1"
    )
    if not rows:
        return None
    place, before, lo = rows[0]
    return Stall(place=place, begin_s=(before - origin) / NS, end_s=(lo - origin) / NS)


def _progress(run: EvidenceViews, series: Series) -> None:
    """Fill `lag` and `acknowledged` from the highest offsets in each bucket."""
    acked = run.rows(
        f'SELECT {PLACE}, {_bucket(series, "complete_ns")}, max("offset") + 1 FROM sends '
        "WHERE outcome = 'ok' AND \"offset\" IS NOT NULL GROUP BY 1, 2"
    )
    read = run.rows(
        f'SELECT coalesce(c."group", r.client), {PLACE}, '
        f'{_bucket(series, "read_ns")}, max("offset") + 1 FROM reads r LEFT JOIN '
        '(SELECT DISTINCT client, "group", kind FROM clients) c USING (client) '
        "WHERE coalesce(c.kind, '') <> 'final' AND r.client NOT LIKE 'final-%' GROUP BY 1, 2, 3"
    )
    buckets = len(series.at_s)
    ends = _running_maximum(((place, bucket, end) for place, bucket, end in acked), buckets)
    positions: dict[str, dict[str, list[int]]] = defaultdict(dict)
    by_reader: dict[str, list[Any]] = defaultdict(list)
    for reader, at, bucket, end in read:
        by_reader[reader].append((at, bucket, end))
    for reader, offsets in sorted(by_reader.items())[:LARGEST]:
        positions[reader] = _running_maximum(offsets, buckets)
    for reader, read_ends in positions.items():
        series.lag[reader] = [
            sum(max(0, ends[at][n] - read_ends[at][n]) for at in read_ends if at in ends)
            for n in range(buckets)
        ]
    largest = sorted(ends, key=lambda at: (-ends[at][-1], at))[:LARGEST]
    for at in sorted(largest):
        series.acknowledged[at] = [float(end) for end in ends[at]]


def _running_maximum(rows: Any, buckets: int) -> dict[str, list[int]]:
    """The highest value so far, by partition and bucket."""
    maxima: dict[str, list[int]] = {}
    for at, bucket, end in rows:
        if at is None or bucket is None or bucket >= buckets:
            continue
        highest = maxima.setdefault(at, [0] * buckets)
        highest[max(0, bucket)] = max(highest[max(0, bucket)], end)
    for highest in maxima.values():
        for n in range(1, buckets):
            highest[n] = max(highest[n], highest[n - 1])
    return maxima
