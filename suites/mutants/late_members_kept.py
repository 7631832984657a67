"""Treats members that missed the rebalance as static members."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a member that does not rejoin within the rebalance timeout stays in its group"
MODELS = "KIP-62: a rebalance timeout that removes no member"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def complete(group: Any, now_ms: float) -> None:
            absent = [
                one
                for one in group.members.values()
                if one.on_join is None and one.instance_id is None
            ]
            for one in absent:
                mark.hit()
                one.instance_id = one.member_id
            original(group, now_ms)
            for one in absent:
                one.instance_id = None

        return complete

    replace("urteil.broker.groups.group:Group._complete_join", make)
