"""Keeps the epoch cache entries of truncated records."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Mark, replace

ABOUT = "the leader epoch cache keeps entries of records that were truncated"
MODELS = "KIP-101: epochs that are not truncated"
SCENARIO = "fast-failover"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def truncate_from_end(epochs: Any, end_offset: int) -> None:
        if epochs._starts and epochs._starts[-1] >= end_offset:
            mark.hit()

    def put(epochs: Any, epoch: int, start_offset: int) -> bool:
        if epoch in epochs._epochs:
            return False
        epochs._epochs.append(epoch)
        epochs._starts.append(start_offset)
        return True

    where = "urteil.broker.log.epoch_cache:EpochCache"
    replace(f"{where}.truncate_from_end", lambda _: truncate_from_end)
    replace(f"{where}._put", lambda _: put)
