"""The keys of a producer's records."""

from __future__ import annotations

import time
from itertools import pairwise

import msgspec
import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.producers.produced_records import Records
from urteil.harness.scenario import TopicFact, WorkloadSpec


@pytest.mark.parametrize(("kind", "shares"), [("application", True), ("append", False)])
def test_inputs_of_an_application_share_their_keys(kind: str, shares: bool) -> None:
    topics = tuple(
        TopicFact(name=name, topic_id=name, partitions=3, replication_factor=1)
        for name in ("left", "right")
    )
    spec = msgspec.structs.replace(
        spec_of("p1", "producer"), topics=topics, workload=WorkloadSpec(kind=kind, keys=12)
    )
    records = Records(spec)
    sent = [records.record(op) for op in range(600)]
    keys = {
        topic: {(record.key, record.partition) for record in sent if record.topic == topic}
        for topic in ("left", "right")
    }
    assert (keys["left"] == keys["right"]) is shares
    assert len({key for key, _ in keys["left"]}) == len(keys["left"])


def test_timestamps_with_jitter_fall_and_lie_within_it() -> None:
    load = WorkloadSpec(options={"timestamp_jitter_ms": "400"})
    records = Records(msgspec.structs.replace(spec_of("p1", "producer"), workload=load))
    begin_ms = time.time_ns() // 1_000_000
    times = [records.record(op).timestamp_ms for op in range(200)]
    end_ms = time.time_ns() // 1_000_000
    assert any(later < earlier for earlier, later in pairwise(times))
    assert begin_ms - 400 <= min(times) <= max(times) <= end_ms
