"""Specs of clients that a test only looks at."""

from __future__ import annotations

from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.scenario import TopicFact, WorkloadSpec


def spec_of(client: str, kind: str, **options: str) -> ClientSpec:
    """The first session of a client of one topic, in a workload with these options."""
    spec = ClientSpec(
        run="r",
        client=client,
        session=1,
        kind=kind,
        bootstrap=("127.0.0.1:9092",),
        journal="unused",
        topics=(TopicFact(name="t", topic_id="id", partitions=1, replication_factor=1),),
        workload=WorkloadSpec(options=options),
    )
    return client_kinds()[kind].complete(spec)
