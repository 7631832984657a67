"""A healthy consumer group beside made-up evidence: two members, one after the other.

`g0` reads the first half of each partition, until the crash. `g1` continues at the offset that `g0`
committed, and keeps its partitions through one more generation. A late commit of `g0` is rejected.
"""

from __future__ import annotations

from typing import Any

from urteil.harness.verify.synthetic import (
    BEGIN_NS,
    CRASH_NS,
    END_NS,
    LED_NS,
    POLL,
    TOPIC,
    TOPIC_ID,
    S,
    Shape,
)

GROUP = "group"
Tables = dict[str, list[dict[str, Any]]]


def add_group(tables: Tables, shape: Shape) -> Tables:
    """Add the evidence of both members to the tables of `synthetic.healthy(shape)`."""
    for number, member in enumerate(("g0", "g1")):
        tables["clients"].append(
            {"client": member, "session": 0, "kind": "group", "group": GROUP}
            | {"library": "kafka-python", "version": "3.0", "boot_id": "boot", "pid": 4010 + number}
            | {"isolation": "read_uncommitted", "begin_ns": (BEGIN_NS, LED_NS)[number] - S}
            | {"end_ns": END_NS + 60 * S}
        )
        tables["manifest"].append(
            {"file": f"journal/{member}.jsonl", "kind": "journal", "ended_properly": True}
        )
        for partition in range(shape.partitions):
            _add_member(tables, shape, partition, number)
    return tables


def _add_member(tables: Tables, shape: Shape, partition: int, number: int) -> None:
    half = shape.records // 2
    low, high = (0, half) if number == 0 else (half, shape.records)
    begin_ns = BEGIN_NS if number == 0 else LED_NS
    client_columns = {"client": f"g{number}", "session": 0, "generation": number + 1}
    place = {"topic_id": TOPIC_ID, "topic": TOPIC, "partition": partition}
    member = client_columns | place | {"group": GROUP, "member_id": f"m{number}"}
    request = {"invoke_ns": begin_ns - S // 2, "complete_ns": begin_ns - S // 4, "outcome": "ok"}
    tables.setdefault("assignments", []).append(
        member | {"event": "assigned", "at_ns": begin_ns - S}
    )
    tables.setdefault("commit_reads", []).append(member | request | {"offset": low or None})
    sends = {
        row["offset"]: row
        for row in tables["sends"]
        if row["partition"] == partition and low <= row["offset"] < high
    }
    for offset in range(low, high):
        _add_read(tables, client_columns | place, sends[offset], offset - low)
        if offset % POLL == POLL - 1 or offset == high - 1:
            at_ns = sends[offset]["complete_ns"] + 30_000_000
            _add_poll(tables, client_columns | place, low, offset + 1, at_ns - 5_000_000)
            _add_commit(tables, member, offset + 1, at_ns, outcome="ok")
    if number == 1:
        next_generation = {"event": "assigned", "generation": 3, "at_ns": END_NS + 50 * S}
        tables["assignments"].append(member | next_generation)
    if number == 0:
        _add_commit(tables, member, high, CRASH_NS + 20 * S, outcome="fail")


def _add_read(
    tables: Tables, client_columns: dict[str, Any], send: dict[str, Any], number: int
) -> None:
    columns = ("offset", "key", "value_id", "timestamp_ms", "leader_epoch", "intact")
    tables["reads"].append(
        client_columns
        | {name: send.get(name) for name in columns}
        | {"intact": True, "pass": 1, "poll": number // POLL, "position_in_poll": number % POLL}
        | {"read_ns": send["complete_ns"] + 20_000_000}
    )


def _add_poll(
    tables: Tables, client_columns: dict[str, Any], low: int, position: int, at_ns: int
) -> None:
    number, before = (position - 1 - low) // POLL, (position - 1) // POLL * POLL
    reader = {name: value for name, value in client_columns.items() if name != "generation"}
    tables["polls"].append(
        reader
        | {"poll": number, "invoke_ns": at_ns - 1_000_000, "complete_ns": at_ns, "outcome": "ok"}
        | {"position_before": max(low, before), "position_after": position}
    )


def _add_commit(
    tables: Tables, member: dict[str, Any], offset: int, at_ns: int, *, outcome: str
) -> None:
    tables.setdefault("commits", []).append(
        member
        | {"invoke_ns": at_ns, "complete_ns": at_ns + 1_000_000, "outcome": outcome}
        | {"offset": offset, "processed_to": offset}
    )
