"""Isolation of transactions that append to several partitions and read several (list-append)."""

from __future__ import annotations

from urteil.harness.scenario import FaultSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import fault
from urteil.harness.scenarios.transactions import SAFE, scenario

LISTS = TopicSpec(name="urteil-list", partitions=4, config=SAFE)
ISOLATION = ("g1c", "g1c_realtime", "fractured_read", "stale_end")


def lists(count: int = 5, /, **options: str) -> WorkloadSpec:
    """`count` clients whose transactions append to lists and read them."""
    return WorkloadSpec(
        kind="list-append",
        topics=(LISTS,),
        producers=count,
        rate_records_per_s=120,
        isolation="read_committed",
        options=options,
    )


def isolation_scenario(
    name: str,
    about: str,
    *faults: FaultSpec,
    duration_s: float = 18.0,
    load: WorkloadSpec | None = None,
) -> Scenario:
    """Transactions over lists, judged by all guarantees that Kafka gives for their isolation."""
    return scenario(
        name,
        about,
        *faults,
        load=load or lists(),
        guarantees=ISOLATION,
        duration_s=duration_s,
    )


LIST_APPEND = isolation_scenario(
    "list-append",
    "transactions append to several partitions and read several, many of them aborted, without a "
    "fault: no cycle of reads, no record of an aborted or open transaction, and none passed over",
    load=lists(aborts="0.3"),
    duration_s=14.0,
)

LIST_APPEND_FAULTS = isolation_scenario(
    "list-append-faults",
    "transactions append to several partitions and read several while a leader dies, another one "
    "is cut off from all brokers, and a client dies in its transaction: isolated as without faults",
    fault("crash", "leader", 4, 4),
    fault("kill_client", "list_appender", 11, 2),
    fault("isolate", "leader", 13, 6),
    load=lists(aborts="0.2", transaction_timeout_ms="6000"),
    duration_s=24.0,
)
