"""The specification of one client process (`SPEC.json`), and the client settings that follow from
it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from urteil.harness.clients.options import (
    FETCH_MAX_WAIT_MS,
    FetchOptions,
    LibraryOptions,
    SendOptions,
    TransactionOptions,
)
from urteil.harness.clients.workload_kinds import has_tombstones
from urteil.harness.scenario import TopicFact, WorkloadSpec

RECONNECT_BACKOFF_MAX_MS = 500
METADATA_MAX_AGE_MS = 3_000
BOOTSTRAP_TIMEOUT_MS = 5_000
OLD = (0, 10, 1)
"""A release without record batches: no headers, no idempotence, one message each."""

POLICY = "cleanup.policy"
LIBRARY_SETTINGS = ("retries", "linger_ms", "batch_size", "compression_type")


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
    users, by broker id. A client of the second cluster has the first one's brokers in
    `other_bootstrap`.

    The last four fields follow from the client's kind (`ClientKind.complete`): whether it has the
    protocol of a release without record batches, whether it is idempotent, its group, and its
    `group.instance.id` as a static member (KIP-345)."""

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
    other_bootstrap: tuple[str, ...] = ()
    is_old: bool = False
    idempotent: bool = False
    group: str | None = None
    instance: str | None = None

    @property
    def isolation(self) -> str:
        """The isolation level: `reads`, else the workload's."""
        return self.reads or self.workload.isolation

    @property
    def number(self) -> int:
        """The number in a client's name: 2 for `c2` and for its third session `c2.3`."""
        return client_number(self.client)

    @property
    def is_old_by_turn(self) -> bool:
        """Whether it is a second client in a workload with old clients."""
        return LibraryOptions.of(self.workload).old_clients and self.number % 2 == 0

    def topic_ids(self) -> dict[str, str]:
        return {topic.name: topic.topic_id for topic in self.topics}

    def compacted_topics(self) -> frozenset[str]:
        """Topics that get tombstones: compacted topics in workloads for them."""
        if not has_tombstones(self.workload.kind):
            return frozenset()
        return frozenset(t.name for t in self.topics if "compact" in t.config.get(POLICY, ""))

    def copies(self) -> frozenset[str]:
        """Topics that an application copies to."""
        return frozenset(topic.name for topic in self.topics if topic.copies)

    def partitions(self) -> list[tuple[str, int]]:
        """Every partition of the workload's topics, in a fixed order."""
        return [(t.name, p) for t in self.topics for p in range(t.partitions)]


def base_name(client: str) -> str:
    """The name that all sessions of a client share: `t1` for `t1.2`."""
    return client.partition(".")[0]


def client_number(client: str) -> int:
    """The number in a client's name; 1 for a name without a number."""
    digits = re.search(r"\d+", base_name(client))
    return int(digits[0]) if digits else 1


def own_id(load: WorkloadSpec, client: str) -> str:
    """The id that all sessions of a client share, within the workload's group."""
    return f"{load.group}-{base_name(client)}"


def transactional_id(spec: ClientSpec) -> str:
    """The transactional id of all sessions of a client: `t1` and `t1.2` share it."""
    return own_id(spec.workload, spec.client)


def transaction_timeout_ms(load: WorkloadSpec) -> int:
    """`transaction.timeout.ms` of the lab's transactional clients."""
    return TransactionOptions.of(load).transaction_timeout_ms


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
    """acks, idempotence, timeouts and `SendOptions` by kafka-python's names."""
    load = spec.workload
    config = connection_config(spec) | {
        "acks": load.acks,
        "enable_idempotence": spec.idempotent,
        "max_in_flight_requests_per_connection": load.in_flight,
        "delivery_timeout_ms": load.delivery_timeout_ms,
        "max_block_ms": load.delivery_timeout_ms,
    }
    return config | library_settings(load)


def library_settings(load: WorkloadSpec) -> dict[str, Any]:
    """The settings of the producers' libraries that the workload sets, by kafka-python's names."""
    options = SendOptions.of(load)
    settings = {name: getattr(options, name) for name in LIBRARY_SETTINGS}
    return {name: value for name, value in settings.items() if value is not None}


def consumer_config(spec: ClientSpec) -> dict[str, Any]:
    """No automatic commit; a lost position raises an error instead of a reset.

    The consumer returns batches with a wrong CRC: kafka-python would retry them forever, and every
    payload has a checksum of its own.
    """
    config = connection_config(spec) | {
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": spec.isolation,
        "fetch_max_wait_ms": FETCH_MAX_WAIT_MS,
        "check_crcs": False,
    }
    return config if spec.group is None else config | {"group_id": spec.group}


def fetch_limits(spec: ClientSpec) -> dict[str, Any]:
    """The size of fetches of live readers and members, if the workload sets it."""
    limit = FetchOptions.of(spec.workload).fetch_bytes
    if limit is None:
        return {}
    return {"max_partition_fetch_bytes": limit, "fetch_max_bytes": limit}
