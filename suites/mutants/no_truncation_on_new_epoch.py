"""Removes the last epoch from a follower's fetch requests."""

from __future__ import annotations

import dataclasses
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "a deposed leader keeps its unreplicated tail and appends the new leader's records behind it"
)
MODELS = "truncation by leader epoch left out (KIP-101, KIP-279)"
SCENARIO = "cut-crash"
GUARANTEE = "replica_divergence"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def request(following: Any, max_bytes: int) -> Any:
            asked = original(following, max_bytes)
            if asked.last_fetched_epoch not in (-1, asked.current_leader_epoch):
                mark.hit()
            return dataclasses.replace(asked, last_fetched_epoch=-1)

        return request

    replace("urteil.broker.replication.followed_partition:FollowedPartition.request", make)
