"""Creation of ACLs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.guarded import Guarded, GuardedPair, acl
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.messages import CreateAclsRequest

SAID = {
    "as it should be": [("a", "User:tom")],
    "no type": [("a", "tom")],
    "no principal": [("a", "")],
    "everybody without a type": [("a", "*")],
    "a type and a name that are empty": [("a", ":tom"), ("a", "User:")],
    "a good one of the same topic": [("a", "User:tom"), ("a", "tom")],
    "good ones of other topics": [("a", "tom"), ("b", "User:tom"), ("", "User:tom")],
}


@pytest.mark.parametrize("what", SAID)
def test_malformed_principal_is_rejected_with_its_whole_resource(
    guarded: GuardedPair, what: str
) -> None:
    """A principal without a colon fails every creation for its resource."""
    creations = [
        acl(ResourceType.TOPIC, name, Operation.READ, principal=principal)
        for name, principal in SAID[what]
    ]

    def ask(guarded_side: Guarded) -> Any:
        answer = guarded_side.admin.ask(CreateAclsRequest(creations=creations), 3)
        acls = guarded_side.acls(host_filter=acl(ResourceType.TOPIC, "a", Operation.READ).host)
        guarded_side.revoke()
        return answer, acls

    guarded.assert_same(ask)
