"""The specification of one client process (`SPEC.json`), and the client settings that follow from
it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from urteil.harness.scenario import RACK, TopicFact, WorkloadSpec

RECONNECT_BACKOFF_MAX_MS = 500
METADATA_MAX_AGE_MS = 3_000
BOOTSTRAP_TIMEOUT_MS = 5_000
TRANSACTION_TIMEOUT_MS = 8_000
GROUP_TIMES = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 1_000,
    "max_poll_interval_ms": 300_000,
}
ASSIGNORS = ("range", "cooperative")
SECOND = "second"
"""The suffix of the second group. With the five partitions of the lab's offsets topic, both groups
have the same coordinator."""
IN_GROUP = ("group", "offsets", "copier", "committer", "zombie")
TRANSACTIONAL = ("txn", "copier", "late", "zombie")
"""Kinds of clients that write in transactions."""
OLD = (0, 10, 1)
"""A release without record batches: no headers, no idempotence, one message each."""

POLICY = "cleanup.policy"


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of a final pass.

    `acked_end` is one past the highest acknowledged offset, `leader` the broker that should lead.
    """

    topic: str
    partition: int
    acked_end: int
    leader: int | None = None


class FinalPass(msgspec.Struct, frozen=True, kw_only=True):
    """One round of final reads. After an election a leader may report an end below the acknowledged
    one until its followers have fetched once: the reader repeats the request for at most `settle_s`
    seconds."""

    number: int
    goals: tuple[Goal, ...]
    deadline_s: float
    settle_s: float


class ClientSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One client process. `rate_records_per_s` is its own share of the load; 0 sends nothing. A
    producer with `records` sends that many records as fast as possible. `reads` overrides the
    workload's isolation level. `user_listeners` are the addresses of the brokers' listeners for
    users, by broker id."""

    run: str
    client: str
    session: int
    kind: str
    bootstrap: tuple[str, ...]
    journal: str
    topics: tuple[TopicFact, ...]
    workload: WorkloadSpec
    rate_records_per_s: float = 0.0
    seed: int = 1
    records: int | None = None
    flush_deadline_s: float = 15.0
    final: FinalPass | None = None
    reads: str = ""
    user_listeners: tuple[str, ...] = ()

    @property
    def isolation(self) -> str:
        """The isolation level: `reads`, else the workload's."""
        return self.reads or self.workload.isolation

    @property
    def number(self) -> int:
        """The number in a client's name: 2 for `c2` and for its third session `c2.3`."""
        return int(self.client.partition(".")[0][1:])

    @property
    def is_old(self) -> bool:
        """Whether the client uses the protocol of a release without record batches: every second
        reader and producer, if the workload requests it."""
        wanted = int(self.workload.options.get("old_clients", "0"))
        may_be_old = self.kind in ("consumer", "producer")
        return may_be_old and bool(wanted) and self.number % 2 == 0

    @property
    def idempotent(self) -> bool:
        """Whether the client is idempotent. As in the Java client, idempotence requires acks=all.
        Transactional clients and the repeater always have it."""
        if self.kind in (*TRANSACTIONAL, "repeater"):
            return True
        wanted = self.workload.idempotent and self.workload.acks == -1 and not self.is_old
        return self.kind == "producer" and wanted

    @property
    def group(self) -> str:
        """The consumer group. Every second committer uses a second group for the same topic; a
        zombie has a group of its own."""
        if self.kind == "zombie":
            return transactional_id(self)
        is_other = self.kind == "committer" and self.number % 2 == 0
        return f"{self.workload.group}-{SECOND}" if is_other else self.workload.group

    def topic_ids(self) -> dict[str, str]:
        return {topic.name: topic.topic_id for topic in self.topics}

    def compacted_topics(self) -> frozenset[str]:
        """Topics that get tombstones: compacted topics in workloads for them."""
        if self.workload.kind not in ("compacted", "mixed"):
            return frozenset()
        return frozenset(t.name for t in self.topics if "compact" in t.config.get(POLICY, ""))

    def copies(self) -> frozenset[str]:
        """Topics that an application copies to."""
        return frozenset(topic.name for topic in self.topics if topic.copies)

    def partitions(self) -> list[tuple[str, int]]:
        """Every partition of the workload's topics, in a fixed order."""
        return [(t.name, p) for t in self.topics for p in range(t.partitions)]


def transactional_id(spec: ClientSpec) -> str:
    """The transactional id of all sessions of a client: `t1` and `t1.2` share it."""
    return f"{spec.workload.group}-{spec.client.partition('.')[0]}"


def instance_id(spec: ClientSpec) -> str | None:
    """`group.instance.id` of a static member (KIP-345), the same for all sessions of a client; None
    for other members."""
    if spec.kind != "group" or not int(spec.workload.options.get("static", "0")):
        return None
    return f"{spec.workload.group}-{spec.client.partition('.')[0]}"


def transaction_timeout_ms(load: WorkloadSpec) -> int:
    """`transaction.timeout.ms` of the lab's transactional clients."""
    return int(load.options.get("transaction_timeout_ms", TRANSACTION_TIMEOUT_MS))


def load_spec(path: Path) -> ClientSpec:
    return msgspec.json.decode(path.read_bytes(), type=ClientSpec)


def connection_config(spec: ClientSpec) -> dict[str, Any]:
    """Settings of every client: they notice a dead broker and a new leader quickly."""
    return {
        "bootstrap_servers": list(spec.bootstrap),
        "client_id": spec.client,
        "request_timeout_ms": spec.workload.request_timeout_ms,
        "reconnect_backoff_ms": 50,
        "reconnect_backoff_max_ms": RECONNECT_BACKOFF_MAX_MS,
        "retry_backoff_ms": 50,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
        "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    } | ({"api_version": OLD} if spec.is_old else {})


def producer_config(spec: ClientSpec) -> dict[str, Any]:
    """acks, idempotence and timeouts of the scenario. `options` may set retries, linger_ms,
    batch_size and compression_type by kafka-python's names."""
    load = spec.workload
    config = connection_config(spec) | {
        "acks": load.acks,
        "enable_idempotence": spec.idempotent,
        "max_in_flight_requests_per_connection": load.in_flight,
        "delivery_timeout_ms": load.delivery_timeout_ms,
        "max_block_ms": load.delivery_timeout_ms,
    }
    for name in ("retries", "linger_ms", "batch_size"):
        if name in load.options:
            config[name] = int(load.options[name])
    if "compression_type" in load.options:
        config["compression_type"] = load.options["compression_type"]
    return config


def consumer_config(spec: ClientSpec) -> dict[str, Any]:
    """No automatic commit; a lost position raises an error instead of a reset.

    The consumer returns batches with a wrong CRC: kafka-python would retry them forever, and every
    payload has a checksum of its own.
    """
    config = connection_config(spec) | {
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": spec.isolation,
        "fetch_max_wait_ms": 200,
        "check_crcs": False,
    }
    if spec.kind in ("consumer", "group") and "fetch_bytes" in spec.workload.options:
        limit = int(spec.workload.options["fetch_bytes"])
        config |= {"max_partition_fetch_bytes": limit, "fetch_max_bytes": limit}
    if spec.kind == "consumer" and int(spec.workload.options.get("racks", "0")):
        config["client_rack"] = f"{RACK}{spec.number}"
    if spec.kind in IN_GROUP:
        config["group_id"] = spec.group
    if spec.kind == "group":
        config |= {name: int(value) for name, value in group_times(spec).items()}
        config["partition_assignment_strategy"] = [_strategy(assignor(spec))]
        config["group_instance_id"] = instance_id(spec)
        if "max_poll_records" in spec.workload.options:
            config["max_poll_records"] = int(spec.workload.options["max_poll_records"])
    return config


def _strategy(name: str) -> Any:
    """kafka-python's assignor class. Imported here, because a judgement imports this module without
    a client."""
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    return {"range": RangePartitionAssignor, "cooperative": CooperativeStickyAssignor}[name]


def group_times(spec: ClientSpec) -> dict[str, int]:
    """Session timeout, heartbeat interval and poll interval of a group member in ms, by
    kafka-python's names."""
    options = spec.workload.options
    return {name: int(options.get(name, default)) for name, default in GROUP_TIMES.items()}


def assignor(spec: ClientSpec) -> str:
    """`range` (eager) or `cooperative`. ValueError for another one."""
    name = spec.workload.options.get("assignor", "range")
    if name not in ASSIGNORS:
        raise ValueError(f"unknown assignor {name!r}: give {' or '.join(ASSIGNORS)}")
    return name
