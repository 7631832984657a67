"""Finds no member for a TxnOffsetCommit."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "TxnOffsetCommit is answered with UNKNOWN_MEMBER_ID"
MODELS = "a group coordinator that looks for members in the wrong place"
SCENARIO = "transactions-calm"
GUARANTEE = "no_progress"


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    def make(_original: Function) -> Function:
        async def commit(*_given: Any, **_more: Any) -> Any:
            mark.hit()
            return ErrorCode.UNKNOWN_MEMBER_ID

        return commit

    replace("urteil.broker.api.txn_offset_commit:_commit", make)
