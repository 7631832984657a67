"""Some clients speak as in 0.10.1, where the workload wants it; nobody has headers then."""

from __future__ import annotations

import pytest

from urteil.harness.scenario import TopicFact, WorkloadSpec
from urteil.harness.workload.records import Records
from urteil.harness.workload.spec import OLD, ClientSpec, consumer_config, producer_config


def spec_of(client: str, kind: str, old: str) -> ClientSpec:
    return ClientSpec(
        run="r",
        client=client,
        session=1,
        kind=kind,
        bootstrap=("127.0.0.1:9092",),
        journal="unused",
        topics=(TopicFact(name="t", topic_id="id", partitions=1, replication_factor=1),),
        workload=WorkloadSpec(options={"old_clients": old}),
    )


@pytest.mark.parametrize(
    ("client", "kind", "old", "is_old"),
    [
        ("c2", "consumer", "1", True),
        ("c2.3", "consumer", "1", True),  # its third session
        ("c1", "consumer", "1", False),
        ("c2", "consumer", "0", False),
        ("final-2", "final", "1", False),
    ],
)
def test_who_reads_as_of_old(client: str, kind: str, old: str, is_old: bool) -> None:
    assert consumer_config(spec_of(client, kind, old)).get("api_version") == (
        OLD if is_old else None
    )


@pytest.mark.parametrize(("client", "is_old"), [("p1", False), ("p2", True)])
def test_who_writes_as_of_old(client: str, is_old: bool) -> None:
    spec = spec_of(client, "producer", "1")
    config = producer_config(spec)
    assert config.get("api_version") == (OLD if is_old else None)
    assert (config["enable_idempotence"], spec.idempotent) == (not is_old, not is_old)


@pytest.mark.parametrize(("old", "some"), [("1", False), ("0", True)])
def test_old_clients_know_no_headers(old: str, some: bool) -> None:
    records = Records(spec_of("p1", "producer", old))
    assert any(records.record(op).headers for op in range(3)) is some
