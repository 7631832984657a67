"""Keeps a leader's first partition epoch despite AlterPartition answers and LeaderAndIsr."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader proposes every ISR with the partition epoch with which it became leader"
MODELS = "KAFKA-2729: Cached zkVersion not equal to that in zookeeper, skip updating ISR"
SCENARIO = "follower-crash"
GUARANTEE = "slow_recovery"
PARTITION = "urteil.broker.replication.partition:Partition"


def apply(mark: Mark) -> None:
    def keep(partition: Any, known: int) -> None:
        if partition.partition_epoch != known:
            mark.hit()
            partition.partition_epoch = known

    def make_altered(original: Function) -> Function:
        def apply_altered_isr(
            partition: Any, leader_epoch: int, partition_epoch: int, isr: Any, now_ms: float
        ) -> None:
            known = partition.partition_epoch
            original(partition, leader_epoch, partition_epoch, isr, now_ms)
            keep(partition, known)

        return apply_altered_isr

    def make_become_leader(original: Function) -> Function:
        def become_leader(partition: Any, state: Any, now_ms: float) -> Any:
            led, known = partition.is_leader, partition.partition_epoch
            is_new = original(partition, state, now_ms)
            if led:
                keep(partition, known)
            return is_new

        return become_leader

    replace(f"{PARTITION}.apply_altered_isr", make_altered)
    replace(f"{PARTITION}.become_leader", make_become_leader)
