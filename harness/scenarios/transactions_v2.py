"""Transactions v2 (KIP-890): each has an epoch of its own, so that no late request ends or joins
another one. Only the Java client from 4.0 on supports them."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, fault
from urteil.harness.scenarios.protocol import (
    IMPATIENT_BROKERS,
    REQUEST_TIMEOUT_MS,
    begin_s,
    disturb,
    length_s,
)
from urteil.harness.scenarios.quorum import APART, TARGET
from urteil.harness.scenarios.transactions import CLEANUP, DECISIONS, ENDS, ONE_COORDINATOR, SOURCE

LOAD = WorkloadSpec(
    kind="transactions",
    client="java",
    producers=8,
    topics=(SOURCE,),
    rate_records_per_s=150,
    isolation="read_committed",
    request_timeout_ms=REQUEST_TIMEOUT_MS,
)


def _scenario(
    *,
    name: str,
    about: str,
    suites: tuple[str, ...],
    cluster: ClusterSpec,
    faults: tuple[FaultSpec, ...],
    duration_s: float,
) -> Scenario:
    return Scenario(
        name=name,
        about=about,
        suites=suites,
        cluster=cluster,
        workload=LOAD,
        faults=faults,
        guarantees=(*REPLICATION, *ENDS),
        duration_s=duration_s,
        target=TARGET,
    )


TRANSACTIONS_V2 = _scenario(
    name="transactions-v2",
    about="the coordinator of all transactions dies twice, and a leader of the data: a successor "
    "that finds a decision writes its markers again, and no transaction stays open",
    suites=("transactions",),
    cluster=ClusterSpec(controllers=APART.controllers, config=CLEANUP | ONE_COORDINATOR),
    faults=(
        fault("crash", "leader", 4, 5, topic=DECISIONS, partition=0),
        fault("crash", "leader", 12, 5),
        FaultSpec(
            fault="crash",
            target="leader",
            at_s=20,
            after_event="decision",
            duration_s=5,
            options={"topic": DECISIONS, "partition": 0},
        ),
    ),
    duration_s=30.0,
)

PROTOCOL_TRANSACTIONS_V2 = _scenario(
    name="protocol-transactions-v2",
    about="single requests that end transactions, write their markers, and by which brokers add "
    "partitions to them, are lost, repeated, or answered late or never: each transaction ends once",
    suites=("protocol",),
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | CLEANUP),
    faults=(
        *disturb("AddPartitionsToTxn", "all->all", begin_s(0)),
        *disturb("EndTxn", "client->all", begin_s(1)),
        *disturb("WriteTxnMarkers", "all->all", begin_s(2)),
    ),
    duration_s=length_s(3),
)
