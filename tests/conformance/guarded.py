"""Our broker and Apache Kafka's, each alone in its cluster, with ACLs; and who asks them.

Everybody is `User:ANONYMOUS` there: hosts distinguish clients. The tests' own address may do all,
`STRANGER` what a test grants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.conformance.differences import differences
from tests.conformance.pair import LASTING
from tests.conformance.side import Side
from urteil.broker.security.acls.acl_model import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from urteil.broker.wire.messages import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    MetadataRequest,
)
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

ANONYMOUS = "User:ANONYMOUS"
OWN_HOST = "127.0.0.1"
STRANGER = "127.0.0.66"
MAX_MEMBERS = 3
CONFIG = LASTING | {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": "20",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.max.size": str(MAX_MEMBERS),
}
EVERYTHING = (
    (ResourceType.TOPIC, "*"),
    (ResourceType.GROUP, "*"),
    (ResourceType.TRANSACTIONAL_ID, "*"),
    (ResourceType.DELEGATION_TOKEN, "*"),
    (ResourceType.USER, "*"),
    (ResourceType.CLUSTER, CLUSTER_NAME),
)
Ask = Callable[[Side], Any]


def acl(
    type: ResourceType,
    name: str,
    operation: Operation,
    *,
    host: str = STRANGER,
    kind: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    principal: str = ANONYMOUS,
) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=type,
        resource_name=name,
        resource_pattern_type=kind,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def filter_fields(**more: Any) -> dict[str, Any]:
    """Fields of a filter that picks every ACL, but for those given."""
    everything = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
    return everything | more


class Guarded:
    """A cluster, its administrator and a stranger, both at home on b1."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name
        direct = [
            "{}:{}".format(*cluster.plan.direct_address(broker)) for broker in cluster.plan.brokers
        ]
        zookeeper = cluster.plan.zookeeper_direct()
        self.admin = Side(name, direct, zookeeper)
        self.muted = Side(name, direct, zookeeper)  # for requests that have to wait
        self.stranger = Side(name, direct, zookeeper, source=STRANGER)

    def grant(self, *acls: CreateAclsRequest.AclCreation) -> None:
        answer = self.admin.get(CreateAclsRequest(creations=acls), 3)
        assert [result.error_code for result in answer.results] == [0] * len(acls), answer

    def revoke(self, **filters: Any) -> None:
        """What was granted to the stranger, or what else is picked."""
        filters = filter_fields(**(filters or {"host_filter": STRANGER}))
        answer = self.admin.get(
            DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**filters)]), 3
        )
        assert answer.filter_results[0].error_code == 0, answer

    def acls(self, **filters: Any) -> Any:
        """In an order of their own: Apache Kafka's is that of a hash map."""
        return in_order(self.admin.ask(DescribeAclsRequest(**filter_fields(**filters)), 3))

    def denials(self) -> set[str]:
        """What the log says of denials."""
        lines = self.cluster.runtime.log("b1").splitlines()
        return {line[line.index("Principal = ") :] for line in lines if " is Denied " in line}

    def close(self) -> None:
        self.admin.close()
        self.muted.close()
        self.stranger.close()


class GuardedPair:
    """Both, for questions."""

    def __init__(self, ours: Guarded, theirs: Guarded) -> None:
        self.ours, self.theirs = ours, theirs

    def run_on_both(self, do: Callable[[Guarded], Any]) -> None:
        do(self.theirs)
        do(self.ours)

    def assert_same(self, ask: Callable[[Guarded], Any]) -> Any:
        expected, answered = ask(self.theirs), ask(self.ours)
        left = list(differences(expected, answered))
        assert not left, "\n".join(map(str, left))
        return expected


def in_order(answer: Any) -> Any:
    """ACLs sorted, wherever an answer has them."""
    if not isinstance(answer, dict):
        return answer
    for resource in answer.get("resources", ()):
        resource["acls"] = sorted(resource["acls"], key=str)
    for name in ("resources", "filter_results"):
        for row in answer.get(name, ()):
            if "matching_acls" in row:
                row["matching_acls"] = sorted(row["matching_acls"], key=str)
    if "resources" in answer:
        answer["resources"] = sorted(answer["resources"], key=str)
    return answer


@contextmanager
def guarded_pair(folder: Path, brokers: int = 1) -> Iterator[GuardedPair]:
    """Two new clusters under `folder`, whose administrator may do everything."""
    with ExitStack() as stack:
        spec = ClusterSpec(brokers=brokers, config=CONFIG)
        targets: list[tuple[str, Target]] = [("ours", UrteilTarget()), ("theirs", KafkaTarget())]
        clusters = [(name, Cluster(spec, target, folder / name)) for name, target in targets]
        for _, cluster in clusters:
            stack.callback(cluster.close)
        with ThreadPoolExecutor(len(clusters)) as pool:
            list(pool.map(lambda cluster: cluster[1].start(), clusters))
        pair = GuardedPair(*(Guarded(cluster, name) for name, cluster in clusters))
        for guarded_side in (pair.ours, pair.theirs):
            stack.callback(guarded_side.close)
            guarded_side.admin.until(
                lambda asked_side=guarded_side: _answers(asked_side, brokers), deadline_s=30
            )  # type: ignore[misc]
            guarded_side.grant(*(acl(*what, Operation.ALL, host=OWN_HOST) for what in EVERYTHING))
        yield pair


def _answers(guarded_side: Guarded, brokers: int) -> bool:
    answer = guarded_side.admin.get(MetadataRequest(topics=[]), 1)
    return answer != "closed" and len(answer.brokers) == brokers and answer.controller_id > 0
