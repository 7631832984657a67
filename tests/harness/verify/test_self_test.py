"""A verdict is UNKNOWN where the self-test misses a damage."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import msgspec
import pytest

from tests.harness.verify.example_runs import healthy, judged
from urteil.harness.verify import self_test, synthetic
from urteil.harness.verify.damage import DAMAGES
from urteil.harness.verify.damage.copy import Copy, Untried
from urteil.harness.verify.damage.records import swap_records
from urteil.harness.verify.damage.replicas import break_sequence, change_leader_epoch, open_hole
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import Verdict
from urteil.harness.verify.synthetic import Shape


def test_every_damage_is_found(tmp_path: Path) -> None:
    """In several partitions, in any row order, on a host that has just started."""
    shape = Shape(records=500, partitions=3)
    tables = healthy(shape)
    sooner_ns = min(row["invoke_ns"] for row in tables["sends"]) - 1_000_000_000
    for rows in tables.values():
        random.Random(4).shuffle(rows)
        for row in rows:
            times = [name for name in row if name.endswith("_ns") and row[name]]
            row |= {name: row[name] - sooner_ns for name in times}
    facts = synthetic.facts(shape)
    phases = [
        msgspec.structs.replace(
            phase, begin_ns=max(0, phase.begin_ns - sooner_ns), end_ns=phase.end_ns - sooner_ns
        )
        for phase in facts.phases
    ]
    run_facts = msgspec.structs.replace(facts, phases=phases)
    result = judged(tmp_path, tables, shape=shape, facts=run_facts, canary=True)
    assert result.canary == {damage.name: "found" for damage in DAMAGES}
    assert result.verdict is Verdict.PASS, result.reasons


def test_broken_sequence_follows_another_of_its_producer() -> None:
    """The first record of a producer may have any sequence; so may the first of an epoch. Records
    of aborted transactions are markers in a copy."""
    who = [(1, 0)] * 10 + [(2, 0)] * 10 + [(2, 1)] * 10
    rows = [
        {"value_id": f"v{offset}", "offset": offset, "sequence": offset}
        | {"producer_id": producer, "producer_epoch": epoch, "control": None}
        for offset, (producer, epoch) in enumerate(who)
    ]
    for first in (0, 10, 20):
        copy = Copy({"replicas": [dict(row) for row in rows]}, victims=rows[first:])
        assert break_sequence(copy).offset == first + 1
    with pytest.raises(Untried):
        break_sequence(Copy({"replicas": rows[:6]}, victims=rows[:6]))
    rows[10]["control"] = "abort"
    copy = Copy({"replicas": rows}, victims=rows[11:])
    assert break_sequence(copy).offset == 12, "a marker has no sequence"


def test_hole_is_reported_at_its_first_offset() -> None:
    """Not in a gap before it, as compaction leaves them."""
    kept = [1, 3, 5, 7, 8, 9, 11, 13, 15, 17, 19]
    rows = [
        {"value_id": f"v{offset}", "offset": offset, "broker": broker, "topic_id": "t"}
        for offset in kept
        for broker in (1, 2)
    ]
    tables = {"replicas": rows, "logs": [{"broker": broker, "topic_id": "t"} for broker in (1, 2)]}
    copy = Copy(tables, victims=[row for row in rows if row["broker"] == 1])
    assert open_hole(copy).offset == 8
    assert {(row["broker"], row["offset"]) for row in copy.rows("replicas")} == {
        (broker, offset) for broker in (1, 2) for offset in kept if (broker, offset) != (2, 8)
    }


def test_leader_epoch_of_records_without_epochs_is_not_changed() -> None:
    rows = [
        {"value_id": f"v{offset}", "offset": offset, "broker": broker, "topic_id": "t"}
        | {"leader_epoch": -1}
        for offset in range(10)
        for broker in (1, 2)
    ]
    logs = [{"broker": broker, "topic_id": "t"} for broker in (1, 2)]
    with pytest.raises(Untried, match="no leader epochs"):
        change_leader_epoch(Copy({"replicas": rows, "logs": logs}, victims=rows[::2]))


def test_records_are_swapped_within_one_epoch_of_their_producer() -> None:
    """Between epochs nothing promises an order."""
    rows = [
        {"value_id": f"v{offset}", "offset": offset, "client": "p1", "sequence": offset}
        | {"producer_id": 1, "producer_epoch": offset % 2}
        for offset in range(20)
    ]
    copy = Copy({name: [dict(row) for row in rows] for name in ("sends", "reads", "replicas")})
    copy.victims = copy.rows("sends")[:]
    swap_records(copy)
    moved = [row for row, was in zip(copy.rows("replicas"), rows, strict=True) if row != was]
    assert len({row["producer_epoch"] for row in moved}) == 1
    assert len(moved) == 2


def test_self_test_works_where_one_broker_is_no_minority(tmp_path: Path) -> None:
    shape = Shape(records=500, partitions=2)
    scenario = synthetic.scenario(shape)
    two = msgspec.structs.replace(scenario.cluster, brokers=2)
    small = msgspec.structs.replace(scenario, cluster=two)
    result = judged(tmp_path, healthy(shape), shape=shape, scenario=small, canary=True)
    assert result.canary == {damage.name: "found" for damage in DAMAGES}


def test_self_test_works_where_partitions_may_stand_still_for_long(tmp_path: Path) -> None:
    shape = Shape(records=500, partitions=2)
    scenario = synthetic.scenario(shape)
    patient = msgspec.structs.replace(scenario.cluster, config={"replica.lag.time.max.ms": "60000"})
    slow = msgspec.structs.replace(scenario, cluster=patient)
    result = judged(tmp_path, healthy(shape), shape=shape, scenario=slow, canary=True)
    assert result.canary == {damage.name: "found" for damage in DAMAGES}


def test_self_test_works_with_two_replicas_of_three_brokers(tmp_path: Path) -> None:
    shape = Shape(records=500, partitions=2)
    tables = healthy(shape)
    for name in ("logs", "replicas"):
        tables[name] = [row for row in tables.get(name, []) if row["broker"] != 3]
    for row in tables["states"]:
        row["isr"] = json.dumps([broker for broker in json.loads(row["isr"]) if broker != 3])
    facts = synthetic.facts(shape)
    topics = [msgspec.structs.replace(topic, replication_factor=2) for topic in facts.topics]
    run_facts = msgspec.structs.replace(facts, topics=topics)
    result = judged(tmp_path, tables, shape=shape, facts=run_facts, canary=True)
    assert result.canary == {damage.name: "found" for damage in DAMAGES}


def test_self_test_works_with_final_readers_of_committed_records(tmp_path: Path) -> None:
    """No reader of committed records received all of a torn transaction."""
    shape = Shape(records=500, partitions=2)
    tables = healthy(shape)
    finals = {row["client"] for row in tables["passes"] if row["final"]}
    for name in ("clients", "passes"):
        for row in tables[name]:
            if row["client"] in finals:
                row["isolation"] = "read_committed"
    result = judged(tmp_path, tables, shape=shape, canary=True)
    assert result.canary == {damage.name: "found" for damage in DAMAGES}
    assert result.verdict is Verdict.PASS, result.reasons


def test_self_test_works_with_any_permitted_anomaly(tmp_path: Path) -> None:
    shape = Shape(records=500, partitions=2, acks=0, idempotent=False)
    tables = healthy(shape)
    for row in tables["sends"]:
        row["offset"] = None
    result = judged(tmp_path, tables, shape=shape, canary=True)
    untried = {name for name, outcome in result.canary.items() if outcome != "found"}
    assert untried == {"break a sequence", "strip a producer from a record"}
    assert result.verdict is Verdict.PASS, result.reasons


def test_self_test_works_with_compacted_and_compressed_topics(tmp_path: Path) -> None:
    """Sizes of records are not known there, which quotas are judged by, and many records are
    tombstones. Readers in racks are not judged by slow_fetch, but the copy's are."""
    shape = Shape(records=500, partitions=2)
    tables = healthy(shape)
    for row in tables["sends"][::2]:
        row["tombstone"] = True
    asked = synthetic.scenario(shape)
    load = msgspec.structs.replace(
        asked.workload, kind="compacted", options={"compression_type": "gzip"}
    )
    racks = msgspec.structs.replace(asked.cluster, racks=True)
    asked = msgspec.structs.replace(asked, workload=load, cluster=racks)
    result = judged(tmp_path, tables, shape=shape, scenario=asked, canary=True)
    assert set(result.canary.values()) == {"found"}


def test_check_that_misses_its_damage_makes_the_run_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = GUARANTEES["corrupt"].violations + " AND 1 = 0"
    nothing = nothing.replace("WHERE s.broken_read > 0 OR", "WHERE s.broken_read < 0 OR 1 = 0 AND")
    deaf = dataclasses.replace(GUARANTEES["corrupt"], violations=nothing)
    monkeypatch.setattr(self_test, "GUARANTEES", {**GUARANTEES, "corrupt": deaf})
    shape = Shape(records=500, partitions=2)
    result = judged(tmp_path, healthy(shape), shape=shape, canary=True)
    assert result.verdict is Verdict.UNKNOWN
    assert "corrupt did not find it" in result.reasons[0]


def test_self_test_works_with_few_records_and_shared_passes(tmp_path: Path) -> None:
    shape = Shape(records=250, partitions=1, sliced=True)
    result = judged(tmp_path, healthy(shape), shape=shape, canary=True)
    assert sum(outcome == "found" for outcome in result.canary.values()) > 20
    assert all(outcome.startswith(("found", "not tried")) for outcome in result.canary.values())
    assert result.verdict is Verdict.PASS, result.reasons


def test_run_without_records_has_no_self_test(tmp_path: Path) -> None:
    shape = Shape(records=4, partitions=1)
    result = judged(tmp_path, healthy(shape), shape=shape, canary=True)
    assert result.canary == {"canary": "no partition has enough records that everybody has"}
    assert result.verdict is Verdict.UNKNOWN
