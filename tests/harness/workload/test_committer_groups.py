"""Two groups have positions in the same partitions, and one coordinator."""

from __future__ import annotations

import pytest

from urteil.harness.scenario import WorkloadSpec
from urteil.harness.scenarios.groups import PARTITION
from urteil.harness.verify.coordinators import coordinating_partition
from urteil.harness.workload.spec import ClientSpec, consumer_config

OFFSETS_PARTITIONS = 5


def spec_of(client: str, kind: str) -> ClientSpec:
    return ClientSpec(
        run="r",
        client=client,
        session=1,
        kind=kind,
        bootstrap=("127.0.0.1:9092",),
        journal="unused",
        topics=(),
        workload=WorkloadSpec(),
    )


@pytest.mark.parametrize(
    ("client", "kind", "group"),
    [
        ("k1", "committer", "urteil-group"),
        ("k2", "committer", "urteil-group-second"),
        ("k2.3", "committer", "urteil-group-second"),  # its third session
        ("g2", "group", "urteil-group"),
        ("o1", "offsets", "urteil-group"),
    ],
)
def test_whose_positions_a_client_moves(client: str, kind: str, group: str) -> None:
    spec = spec_of(client, kind)
    assert (spec.group, consumer_config(spec)["group_id"]) == (group, group)
    assert coordinating_partition(group, OFFSETS_PARTITIONS) == PARTITION
