"""Topics that the cleaner compacts while leaders die."""

from __future__ import annotations

import msgspec

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, cluster, fault

_OFTEN = {
    "min.insync.replicas": "2",
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "min.cleanable.dirty.ratio": "0.01",
}
EAGER = TopicSpec(
    name="eager",
    partitions=2,
    config=_OFTEN | {"max.compaction.lag.ms": "3000", "segment.ms": "3000"},
)
"""Compacted all the time; tombstones stay for a day."""

PATIENT = TopicSpec(
    name="patient", partitions=1, config=_OFTEN | {"min.compaction.lag.ms": "3600000"}
)
"""Nothing in it may be cleaned during the run."""

BRIEF = TopicSpec(
    name="brief",
    partitions=2,
    config=_OFTEN
    | {"max.compaction.lag.ms": "2000", "segment.ms": "2000"}
    | {"delete.retention.ms": "1000", "retention.ms": "4000"},
)
"""Tombstones are removed soon. Compaction alone removes nothing else by age."""

LOAD = WorkloadSpec(
    kind="compacted", topics=(DURABLE, EAGER, PATIENT), keys=400, rate_records_per_s=300
)
"""Many keys, so that the last values of most are before the active segment."""

PACKED = msgspec.structs.replace(LOAD, options={"compression_type": "gzip", "linger_ms": "100"})
"""Compressed batches of many records: some are removed, and the others are recompressed."""

CLEANING = cluster(log_cleaner_backoff_ms="500", log_cleaner_threads="1")
OWN = ("latest_value_lost", "stale_value_visible", "resurrected_key", "offset_renumbered")

COMPACTION = Scenario(
    name="compaction",
    about="updates and deletes of 400 keys in compressed batches, cleaned all the time, through a "
    "leader's crash",
    suites=("compaction",),
    cluster=CLEANING,
    workload=PACKED,
    faults=(fault("crash", "leader", 5, 6, topic="eager"),),
    guarantees=("lost_write", *OWN, "tombstone_too_early", "compacted_too_early", "sequence_gap"),
    duration_s=32.0,
)

COMPACTION_CALM = Scenario(
    name="compaction-calm",
    about="many keys in plain batches, cleaned all the time, without faults: every key is resolved",
    suites=("compaction",),
    cluster=CLEANING,
    workload=LOAD,
    guarantees=(
        *("lost_write", *OWN),
        *("tombstone_too_early", "compacted_too_early", "kept_too_long"),
    ),
    duration_s=30.0,
)

TOMBSTONES = Scenario(
    name="tombstones",
    about="deletes of many keys whose tombstones may be removed a second later, in a topic with "
    "retention.ms, which does not apply to compacted topics",
    suites=("compaction",),
    cluster=CLEANING,
    workload=msgspec.structs.replace(LOAD, topics=(DURABLE, BRIEF), keys=4000),
    guarantees=("lost_write", "latest_value_lost", "stale_value_visible", "retained_too_short"),
    duration_s=40.0,
)
