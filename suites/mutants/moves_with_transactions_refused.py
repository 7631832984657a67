"""A group's positions never move with a transaction."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "whoever commits positions in a transaction is told that the group has no such member"
MODELS = "a group coordinator that looks for transactions' members where it keeps none"
SCENARIO = "transactions-calm"
GUARANTEE = "no_progress"


def apply(mark: Mark) -> None:
    """Nobody is a member."""
    from urteil.broker.wire.errors import ErrorCode

    def make(_original: Function) -> Function:
        async def commit(*_given: Any, **_more: Any) -> Any:
            mark.hit()
            return ErrorCode.UNKNOWN_MEMBER_ID

        return commit

    replace("urteil.broker.api.txn_offset_commit:_commit", make)
