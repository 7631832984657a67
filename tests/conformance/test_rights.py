"""What a stranger is answered by every API, whatever its rights: the same as by Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.differences import differences
from tests.conformance.groups import commit
from tests.conformance.guarded import Guarded, GuardedPair, acl
from tests.conformance.questions.registry import spread
from tests.conformance.records import batch, produce
from tests.conformance.rights import QUESTIONS, RIGHTS, UNKNOWN_ID, Names
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FindCoordinatorRequest, InitProducerIdRequest

IN_NO_ORDER = {
    "groups", "topics", "results", "responses", "transaction_states", "replica_election_results",
    "results_by_topic_v3_and_below", "topic_results", "resources", "configs",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def staged(guarded: GuardedPair) -> None:
    guarded.run_on_both(_stage)


def _stage(guarded_side: Guarded) -> None:
    """A topic with a record, a group with a position, a transactional id."""
    admin = guarded_side.admin
    admin.create("a-topic")
    admin.ask(produce("a-topic", batch([b"v"])), 9)
    for key_type, key in ((0, "a-group"), (1, "a-txn")):
        asked = FindCoordinatorRequest(key=key, key_type=key_type)
        admin.until(lambda request=asked: admin.get(request, 1).error_code == ErrorCode.NONE)  # type: ignore[misc]
    admin.until(lambda: "NONE" in str(admin.ask(commit("a-group", [("a-topic", 0, 1)]), 8)))
    init = InitProducerIdRequest(transactional_id="a-txn", transaction_timeout_ms=60_000)
    admin.until(lambda: admin.get(init, 3).error_code == ErrorCode.NONE)


@pytest.mark.parametrize("rights", RIGHTS)
def test_stranger_with_rights_is_answered_alike(guarded: GuardedPair, rights: str) -> None:
    granted = [_acl(*right) for right in RIGHTS[rights]]
    guarded.run_on_both(lambda guarded_side: guarded_side.grant(*granted))
    left = []
    for text, (make, versions) in QUESTIONS.items():
        chosen = versions or _is_served(make(Names("", UNKNOWN_ID)))
        for version in spread(chosen[0], chosen[-1]):
            expected = _answer_of(guarded.theirs, make, version)
            answered = _answer_of(guarded.ours, make, version)
            left += [
                f"{text} {version}: {difference}"
                for difference in differences(expected, answered)
                if not difference.where.endswith(
                    "usable_bytes"
                )  # what the disk has left at that moment
            ]
    guarded.run_on_both(Guarded.revoke)
    assert not left, "\n".join(left)


def test_denials_are_logged_alike(guarded: GuardedPair) -> None:
    """Of the questions that were asked before in this session."""
    expected, answered = guarded.theirs.denials(), guarded.ours.denials()
    assert "\n".join(sorted(answered - expected)) == ""
    assert "\n".join(sorted(expected - answered)) == ""


def _is_served(message: Any) -> range:
    return range(message.MIN_VERSION, message.MAX_VERSION + 1)


def _acl(type: Any, name: str, operation: Any, kind: Any = None, permission: Any = None) -> Any:
    more = {"kind": kind, "permission": permission}
    return acl(
        type, name, operation, **{key: value for key, value in more.items() if value is not None}
    )


def _answer_of(guarded_side: Guarded, make: Any, version: int) -> Any:
    names = Names("a-topic", guarded_side.admin.ids["a-topic"])
    return _comparable(guarded_side.stranger.ask(make(names), version))


def _is_of_quotas(element: Any) -> bool:
    """Topics that tests of quotas made, on each side others."""
    return isinstance(element, dict) and str(element.get("name")).startswith("quota-")


def _comparable(answer: Any, name: str = "") -> Any:
    """Without what differs from cluster to cluster, and sorted where Apache Kafka's order is that
    of a hash map."""
    if isinstance(answer, dict):
        return {
            key: _comparable(value, key)
            for key, value in answer.items()
            if key not in ("cluster_id", "host", "port", "log_dir", "topic_id")
        }
    if isinstance(answer, list):
        ones = [_comparable(element) for element in answer if not _is_of_quotas(element)]
        return sorted(ones, key=str) if name in IN_NO_ORDER else ones
    if isinstance(answer, str) and "is not authorized." in answer:
        return "not authorized"
    return answer
