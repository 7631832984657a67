"""When a producer without idempotence sends a record twice, the second copy may be appended late,
after records that it sent meanwhile. On a compacted topic that copy is the last of its key, and the
cleaner removes the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import (
    ONE,
    Tables,
    alone,
    asked_for,
    healthy,
    judged,
    named,
    topic,
)
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Status

OLDER, NEWER, LATE = 100, 101, ONE.records
DAY = {"cleanup_policy": "compact", "delete_retention_ms": "86400000"}
NAMES = ("latest_value_lost", "stale_value_visible", "tombstone_too_early", "resurrected_key")


def _made(*, idempotent: bool, tombstone: bool = False) -> Tables:
    """OLDER was sent twice; each of these two records has the other's key, any other its own."""
    tables = healthy()
    for log in tables["logs"]:
        log |= {"log_end": LATE + 1, "high_watermark": LATE + 1, "active_base": LATE}
    for row in tables["passes"]:
        if row["final"]:
            row["to_offset"] = LATE + 1
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = f"k{OLDER if row['offset'] == NEWER else row['offset']}"
    for send in tables["sends"]:
        send["idempotent"] = idempotent
        if send["offset"] == OLDER:
            send |= {"attempts": 2, "ambiguous": True, "tombstone": tombstone}
    return tables


def _copied(tables: Tables) -> None:
    """The first attempt's copy is last, in every log and final pass."""
    tables["replicas"] += [
        row | {"offset": LATE, "batch_base": LATE, "batch_crc": 1, "sequence": -1}
        for row in tables["replicas"] if row["offset"] == OLDER
    ]  # fmt: skip
    tables["reads"] += [
        row | {"offset": LATE, "poll": row["poll"] + 1_000_000}
        for row in tables["reads"] if row["offset"] == OLDER and row["client"] == "final"
    ]  # fmt: skip


def _clean(tables: Tables, *offsets: int, brokers: tuple[int, ...] = (1, 2, 3)) -> None:
    """Cleaners removed these offsets, and the final readers of those brokers received none of
    them."""
    passes = {
        row["pass"] for row in tables["passes"] if row["final"] and row["leader"] in brokers
    }  # fmt: skip
    tables["replicas"] = [
        row for row in tables["replicas"]
        if row["offset"] not in offsets or row["broker"] not in brokers
    ]  # fmt: skip
    tables["reads"] = [
        row for row in tables["reads"]
        if row["offset"] not in offsets or row["client"] != "final" or row["pass"] not in passes
    ]  # fmt: skip


def _found(run_dir: Path, tables: Tables) -> dict[str, list[Any]]:
    facts = synthetic.facts(ONE, topics=topic(**DAY))
    with asked_for(*NAMES):
        result = judged(run_dir, tables, facts=facts)
    assert all(guarantee.status is not Status.UNKNOWN for guarantee in result.guarantees)
    findings_of = {name: named(result, name).findings for name in NAMES}
    return {
        name: [(finding.sub_kind, finding.offset) for finding in some if not finding.permitted]
        for name, some in findings_of.items() if some
    }  # fmt: skip


@pytest.mark.parametrize("cleaned", [(), (OLDER,), (OLDER, NEWER)])
def test_the_late_copy_is_the_keys_last(cleaned: tuple[int, ...], tmp_path: Path) -> None:
    tables = _made(idempotent=False)
    _copied(tables)
    _clean(tables, *cleaned)
    assert _found(tmp_path, tables) == {}


def test_lost_late_copy_is_found(tmp_path: Path) -> None:
    """Nor is anything else left of the key."""
    tables = _made(idempotent=False)
    _clean(tables, OLDER, NEWER)
    assert _found(tmp_path, tables) == {"latest_value_lost": [("absent", NEWER)]}


def test_single_later_send_is_the_last_of_its_key(tmp_path: Path) -> None:
    """An idempotent producer's copy is not a late attempt, but a wrong one."""
    tables = _made(idempotent=True)
    _copied(tables)
    _clean(tables, NEWER)
    findings = _found(tmp_path, tables)
    assert findings["latest_value_lost"] == [("older shown", NEWER)]


def test_possibly_late_tombstone_yields_no_finding(tmp_path: Path) -> None:
    tables = _made(idempotent=False, tombstone=True)
    _clean(tables, OLDER, NEWER)
    assert _found(tmp_path, tables) == {}


def test_first_of_two_tombstones_may_be_cleaned_early(tmp_path: Path) -> None:
    tables = _made(idempotent=True, tombstone=True)
    _copied(tables)
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = "another" if row["offset"] == NEWER else row["key"]
    led = max(tables["states"], key=lambda row: int(row["zxid"]))["leader"]
    _clean(tables, OLDER, brokers=tuple({1, 2, 3} - {led}))
    assert _found(tmp_path, tables) == {}


@pytest.mark.parametrize("gone", ["cleaned", "deleted", "there"])
def test_late_copy_is_not_the_first_one(gone: str, tmp_path: Path) -> None:
    """Also of a producer that waits for each answer."""
    tables = _made(idempotent=False)
    _copied(tables)
    if gone != "there":
        _clean(tables, OLDER)
    for log in tables["logs"]:
        log["log_start"] = OLDER + 1 if gone == "deleted" else 0
    scenario = synthetic.scenario(ONE)
    load = msgspec.structs.replace(scenario.workload, in_flight=1)
    config = DAY if gone == "cleaned" else {}
    result = alone(
        "reordered_send", tmp_path, tables,
        scenario=msgspec.structs.replace(scenario, workload=load),
        facts=synthetic.facts(ONE, topics=topic(**config)),
    )  # fmt: skip
    assert result.status is Status.HOLDS


@pytest.mark.parametrize("gone", ["cleaned", "deleted"])
@pytest.mark.parametrize(
    ("idempotent", "attempts", "status"),
    [
        (False, 2, Status.PERMITTED),
        (False, None, Status.PERMITTED),
        (False, 1, Status.VIOLATED),
        (True, 2, Status.VIOLATED),
    ],
)
def test_acknowledged_copy_may_be_gone_after_several_attempts(
    gone: str, idempotent: bool, attempts: int | None, status: Status, tmp_path: Path
) -> None:
    """A record sent once, or with an idempotent producer, has no other copy."""
    tables = _made(idempotent=idempotent)
    _copied(tables)
    _clean(tables, OLDER)
    for row in tables["sends"]:
        row["attempts"] = attempts if row["offset"] == OLDER else row["attempts"]
    for log in tables["logs"]:
        log["log_start"] = OLDER + 1 if gone == "deleted" else 0
    config = DAY if gone == "cleaned" else {}
    facts = synthetic.facts(ONE, topics=topic(**config))
    result = alone("misplaced_ack", tmp_path, tables, facts=facts)
    assert result.status is status
    assert [(finding.sub_kind, finding.offset) for finding in result.findings] == [
        ("elsewhere", OLDER)
    ]
