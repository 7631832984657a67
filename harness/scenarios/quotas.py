"""Client quotas, and their enforcement by brokers."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

QUOTAS = Scenario(
    name="quotas",
    about="producers, then a reader, get a quota below their demand at each broker, by default "
    "and then of their own; a leader that was down when it was set leads again and must know it",
    suites=("security",),
    cluster=cluster(),
    workload=WorkloadSpec(
        topics=(DURABLE,),
        rate_records_per_s=240,
        value_bytes=1000,
        delivery_timeout_ms=60_000,
        request_timeout_ms=15_000,
        options={"batch_size": "4096"},
    ),
    faults=(
        fault("crash", "leader", 3, 5),
        fault("quota", "clients", 5, 36, producer_byte_rate=15_000),
        fault("elect_preferred", "topic", 12, 2),
        fault("quota", "c1", 44, 14, consumer_byte_rate=3_000),
    ),
    guarantees=(*REPLICATION, "quota_exceeded"),
    duration_s=64.0,
)
"""Each client sends forty thousand bytes a second to every broker. Waiting records are acknowledged
after the quota is removed. The quota is long and large enough that twice its bytes exceed the
permitted excess."""
