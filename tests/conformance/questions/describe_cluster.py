"""DescribeCluster."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import DescribeClusterRequest

CLUSTER = Subject("DescribeCluster", ApiKey.DESCRIBE_CLUSTER)

ASKED = {
    f"endpoints {kind}, operations {operations}": (kind, operations)
    for kind in (-1, 0, 1, 2, 3)
    for operations in (False, True)
}


@CLUSTER.each("with", ASKED)
def describe(asker: Asker, given: tuple[int, bool]) -> Any:
    return asker.ask(
        DescribeClusterRequest(
            endpoint_type=given[0], include_cluster_authorized_operations=given[1]
        )
    )
