"""Ignores LeaderAndIsr requests that make a leader a follower."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a deposed leader ignores its successor and accepts writes"
MODELS = "a stale leader that is not fenced"
SCENARIO = "leader-moves"
GUARANTEE = "two_leaders"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def follow(control: Any, partition: Any, state: Any, leaders: Any) -> None:
            if partition.is_leader:
                mark.hit()
                return
            original(control, partition, state, leaders)

        return follow

    def make_apply(_: Function) -> Function:
        def apply_metadata(control: Any, request: Any) -> None:
            return

        return apply_metadata

    replace("urteil.broker.replication.role_changes:RoleChanges._follow", make)
    replace("urteil.broker.replication.role_changes:RoleChanges.apply_metadata", make_apply)
