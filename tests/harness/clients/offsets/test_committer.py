"""Two groups have offsets of the same partitions, and one coordinator."""

from __future__ import annotations

import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.spec import consumer_config
from urteil.harness.scenarios.groups import PARTITION
from urteil.harness.verify.derived.coordinators import coordinating_partition

OFFSETS_PARTITIONS = 5


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
def test_group_of_a_client(client: str, kind: str, group: str) -> None:
    spec = spec_of(client, kind)
    assert (spec.group, consumer_config(spec)["group_id"]) == (group, group)
    assert coordinating_partition(group, OFFSETS_PARTITIONS) == PARTITION
