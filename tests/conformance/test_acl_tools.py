"""AclCommand of Apache Kafka 3.9.1, which sends requests, and 2.8.0, which writes to ZooKeeper."""

from __future__ import annotations

import pytest

from tests.conformance.guarded import GuardedPair
from tests.conformance.kafka_tools import run_tool, tool

ACL = "kafka.admin.AclCommand"


@pytest.mark.thorough
def test_acls_of_both_tools_are_enforced(guarded: GuardedPair) -> None:
    ours = guarded.ours
    prefix = ["--topic", "tool-", "--resource-pattern-type", "prefixed"]
    who = ["--allow-principal", "User:tom", "--operation", "Read", *prefix]
    assert "Adding ACLs for resource" in tool(ACL, ours.admin.bootstrap, "--add", *who)
    denied = ["--deny-principal", "User:tom", "--deny-host", "127.0.0.9", "--operation", "Write"]
    connect = f"zookeeper.connect={ours.admin.zookeeper}"
    old = ["--authorizer-properties", connect, "--add", *denied, "--topic", "tool-a"]
    assert "Adding ACLs for resource" in run_tool(ACL, old, version="2.8.0")
    ours.admin.until(lambda: len(ours.acls(resource_name_filter="tool-a")["resources"]) == 1)
    match = ["--topic", "tool-a", "--resource-pattern-type", "match"]
    listed = tool(ACL, ours.admin.bootstrap, "--list", *match)
    for line in (
        "(principal=User:tom, host=*, operation=READ, permissionType=ALLOW)",
        "(principal=User:tom, host=127.0.0.9, operation=WRITE, permissionType=DENY)",
    ):
        assert line in listed, listed
    tool(ACL, ours.admin.bootstrap, "--remove", "--force", *prefix)
    left = ours.acls(principal_filter="User:tom")["resources"]
    assert [acl["resource_name"] for acl in left] == ["tool-a"]
    ours.revoke(principal_filter="User:tom")
