"""The results that applications must compute, on inputs of a few records."""

from __future__ import annotations

import duckdb

from urteil.harness.clients.applications import (
    gettaxi,
    ingestion,
    logs,
    movieflix,
    mybank,
    mysocialmedia,
    spark_streaming,
    truckgps,
)
from urteil.harness.verify.engines.dialect import to_duckdb

Event = tuple[str, int, int, str, int]
"""Topic, partition, offset, key and time of a record."""

PAY, LIMIT = mybank.TRANSACTIONS, mybank.THRESHOLDS
COLUMNS = (
    "topic STRING, partition BIGINT, off BIGINT, key STRING, timestamp_ms BIGINT, value_id STRING, "
    "op BIGINT"
)


def expected(query: str, *events: Event) -> list[tuple[object, ...]]:
    """The rows of the query over these events, in order."""
    rows = [(*event, f"run/p1/{number}", number) for number, event in enumerate(events)]
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE inputs ({COLUMNS})")
        database.executemany("INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        return sorted(database.execute(to_duckdb(query)).fetchall())


END: tuple[Event, ...] = ((PAY, 0, 90, "end", 9_000), (LIMIT, 0, 90, "end", 9_000))
"""The last events: by them everything before is due."""


def test_transaction_above_the_threshold_of_its_time_has_an_alert() -> None:
    rows = expected(
        mybank.ALERTED.expected_rows,
        (LIMIT, 0, 0, "k0", 1_500),
        (PAY, 0, 0, "k0", 1_700),
        (LIMIT, 0, 1, "k0", 1_800),
        (PAY, 0, 1, "k0", 2_700),
        (PAY, 0, 2, "k0", 2_900),
        *END,
    )
    assert rows == [
        ("alerts", "0-0", "700 above 500", "each", 1),
        ("alerts", "0-2", "900 above 800", "each", 1),
    ]


def test_transaction_without_threshold_has_no_alert() -> None:
    rows = expected(
        mybank.ALERTED.expected_rows,
        (PAY, 0, 0, "k0", 1_400),
        (LIMIT, 0, 0, "k0", 1_500),
        (PAY, 0, 1, "k1", 1_900),
        *END,
    )
    assert rows == []


def test_alert_is_not_due_before_every_partition_has_newer_events() -> None:
    rows = expected(
        mybank.ALERTED.expected_rows,
        (LIMIT, 0, 0, "k0", 1_500),
        (PAY, 0, 0, "k0", 1_700),
        (PAY, 1, 0, "k1", 2_000),
    )
    assert rows == [("alerts", "0-0", "700 above 500", "each", 0)]


def test_viewer_resumes_at_the_last_position() -> None:
    topic = movieflix.POSITIONS
    rows = expected(
        movieflix.EXPECTED,
        (topic, 0, 0, "k0", 1),
        (topic, 0, 2, "k0", 2),
        (topic, 1, 5, "k1", 3),
    )
    assert rows == [
        ("resume", "k0", "run/p1/1", "latest", 1),
        ("resume", "k1", "run/p1/2", "latest", 1),
    ]


def test_lake_and_key_counts_have_every_record() -> None:
    rows = expected(spark_streaming.EXPECTED, ("t", 0, 0, "k0", 1), ("t", 0, 1, "k0", 2))
    assert rows == [
        ("counts", "k0", "2", "latest", 1),
        ("lake", "run/p1/0", "k0", "each", 1),
        ("lake", "run/p1/1", "k0", "each", 1),
    ]


def test_likes_and_comments_of_a_post_are_counted() -> None:
    posts, likes, comments = mysocialmedia.POSTS, mysocialmedia.LIKES, mysocialmedia.COMMENTS
    rows = expected(
        mysocialmedia.EXPECTED,
        (posts, 0, 0, "k0", 0),
        (likes, 0, 0, "k0", 1),
        (likes, 0, 1, "k0", 2),
        (comments, 0, 0, "k0", 3),
        (comments, 1, 0, "k1", 4),
    )
    assert rows == [
        ("posts-with-counts", "k0", "edition 1, 2 likes, 1 comments", "latest", 1),
        ("posts-with-counts", "k1", "edition 0, 0 likes, 1 comments", "latest", 1),
    ]


def test_surge_price_is_that_of_a_zone_and_a_window() -> None:
    taxis, users = gettaxi.TAXIS, gettaxi.USERS
    rows = expected(
        gettaxi.EXPECTED,
        (taxis, 0, 0, "k1", 5_000),
        (taxis, 0, 1, "k5", 9_999),
        (users, 0, 0, "k1", 6_000),
        (users, 0, 1, "k9", 7_000),
        (users, 0, 2, "k5", 8_000),
        (users, 1, 0, "k2", 10_000),
    )
    assert rows == [
        ("surge-pricing", "1@1", "150%", "latest", 1),
        ("surge-pricing", "2@2", "100%", "latest", 1),
    ]


def test_lake_has_the_records_of_all_sources() -> None:
    rows = expected(ingestion.EXPECTED, ("orders", 0, 0, "k0", 1), ("visits", 0, 0, "k0", 2))
    assert rows == [
        ("lake", "run/p1/0", "orders k0", "each", 1),
        ("lake", "run/p1/1", "visits k0", "each", 1),
    ]


def test_index_has_all_lines_and_errors_are_counted_by_window() -> None:
    rows = expected(
        logs.EXPECTED,
        (logs.LOGS, 0, 0, "k0", 5_000),
        (logs.LOGS, 0, 1, "k0", 9_999),
        (logs.LOGS, 0, 2, "k0", 10_000),
        (logs.METRICS, 0, 0, "k0", 5_000),
    )
    assert rows == [
        ("error-rates", "k0@1", "1 errors in 2", "latest", 1),
        ("error-rates", "k0@2", "0 errors in 1", "latest", 1),
        ("index", "application-logs-0-0", "k0 run/p1/0", "each", 1),
        ("index", "application-logs-0-1", "k0 run/p1/1", "each", 1),
        ("index", "application-logs-0-2", "k0 run/p1/2", "each", 1),
        ("index", "application-metrics-0-0", "k0 run/p1/3", "each", 1),
    ]


def test_speed_alert_uses_the_limit_of_its_time() -> None:
    trucks, limits = truckgps.POSITIONS, truckgps.LIMITS
    rows = expected(
        truckgps.EXPECTED,
        (limits, 0, 0, "k0", 1_060),  # 50
        (trucks, 0, 0, "k0", 1_070),  # 70
        (limits, 0, 1, "k0", 1_090),  # 80
        (trucks, 0, 1, "k0", 1_200),  # 70
        (trucks, 0, 2, "k1", 1_120),  # no limit
        (trucks, 0, 9, "end", 9_000),
        (limits, 0, 9, "end", 9_000),
    )
    assert rows == [
        ("dashboard", "end", "0-9", "latest", 1),
        ("dashboard", "k0", "0-1", "latest", 1),
        ("dashboard", "k1", "0-2", "latest", 1),
        ("notifications", "0-0", "70 above 50", "each", 1),
    ]
