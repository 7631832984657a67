"""Answers DeleteRecords without looking at the followers' log start offsets."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "DeleteRecords is answered when the leader's log has been cut, before its followers' logs are"
)
MODELS = "an answer that skips the purgatory"
SCENARIO = "deleted-once"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    from urteil.broker.replication.record_deletion import DeletionResult
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def begin(deletion: Any, key: Any, offset: int) -> None:
            original(deletion, key, offset)
            if key in deletion._waiting:
                mark.hit()
                _, wanted = deletion._waiting.pop(key)
                deletion._answers[key] = DeletionResult(ErrorCode.NONE, wanted)

        return begin

    replace("urteil.broker.replication.record_deletion:RecordDeletion._begin", make)
