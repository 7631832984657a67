"""Keeps state and generation of a stable group when a member joins."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a member that joins a stable group gets the leader's partitions, without a rebalance"
MODELS = "a rebalance that does not wait for revocations"
SCENARIO = "rebalance-storm"
GUARANTEE = "two_owners"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def add(group: Any, member_id: str, request: Any, now_ms: float, answer: Any) -> None:
            stable, leader = group.state.value == "Stable", group.members.get(group.leader)
            if not stable or leader is None:
                original(group, member_id, request, now_ms, answer)
                return
            mark.hit()
            group._prepare_rebalance = lambda _now_ms: None
            try:
                original(group, member_id, request, now_ms, lambda _result: None)
            finally:
                del group._prepare_rebalance
            member = group.members[member_id]
            member.on_join, member.is_new = None, False
            member.assignment = leader.assignment
            member.heard(now_ms)
            answer(group._join_result(member))

        return add

    replace("urteil.broker.groups.group:Group._add", make)
