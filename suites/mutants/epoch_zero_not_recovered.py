"""Treats epoch 0 as no epoch in recovery."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log that is recovered after a crash forgets where leader epoch 0 began"
MODELS = "KAFKA-10432: LeaderEpochCache is incorrectly recovered for leader epoch 0"
SCENARIO = "power-cut"
GUARANTEE = "epoch_lineage"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def settle_epochs(recovery: Any) -> None:
            original(recovery)
            epochs = recovery.loaded.epochs
            later = [(epoch, start) for epoch, start in epochs.entries if epoch]
            if not recovery.checkpointed.clean and len(later) < len(epochs.entries):
                mark.hit()
                epochs.replace(later)

        return settle_epochs

    replace("urteil.broker.log.recovery:_Recovery._settle_epochs", make)
