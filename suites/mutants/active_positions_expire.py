"""Expires offsets of subscribed topics like any other."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "committed offsets of topics that a group consumes expire after offsets.retention.minutes"
MODELS = "KAFKA-4682 (KIP-211)"
SCENARIO = "positions-expire"
GUARANTEE = "commit_went_back"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def expired(
            administration: Any, shard: Any, group: Any, now_ms: int, retention_ms: int
        ) -> Any:
            gone = original(administration, shard, group, now_ms, retention_ms)
            if group.state.name == "STABLE":
                known = shard.offsets.get(group.group_id, {})
                more = [
                    place
                    for place, committed in known.items()
                    if place not in gone
                    and committed.value.expires
                    and committed.value.expire_timestamp <= now_ms
                ]
                if more:
                    mark.hit()
                gone = [*gone, *more]
            return gone

        return expired

    replace("urteil.broker.groups.maintenance:GroupMaintenance._expired", make)
