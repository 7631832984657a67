"""Ignores UpdateMetadata entries of partitions that the broker leads."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker that becomes leader keeps reporting the previous leader to clients"
MODELS = "KAFKA-7235: stale metadata on one broker"
SCENARIO = "indexes"
GUARANTEE = "disagreement"
CONTROL = "urteil.broker.replication.role_changes:RoleChanges"


def apply(mark: Mark) -> None:
    led: set[tuple[str, int]] = set()

    def make_lead(original: Function) -> Function:
        def lead(control: Any, partition: Any, state: Any) -> None:
            led.add((partition.topic, partition.partition))
            original(control, partition, state)

        return lead

    def make_follow(original: Function) -> Function:
        def follow(control: Any, partition: Any, state: Any, leaders: Any) -> None:
            led.discard((partition.topic, partition.partition))
            original(control, partition, state, leaders)

        return follow

    def make_update(original: Function) -> Function:
        def update(cache: Any, request: Any, states: Any = None) -> Any:
            before = {one: cache.partition(*one) for one in led}
            deleted = original(cache, request, states)
            for (topic, number), state in before.items():
                now = cache.partition(topic, number)
                if state is not None and now is not None and state.leader != now.leader:
                    mark.hit()
                    cache.topics[topic][number] = state
            return deleted

        return update

    replace(f"{CONTROL}._lead", make_lead)
    replace(f"{CONTROL}._follow", make_follow)
    replace("urteil.broker.replication.metadata_cache:MetadataCache.update", make_update)
