"""Who makes a topic anew finds where others had been in its namesake."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "positions of groups in a topic stay when it is deleted"
MODELS = "OffsetMetadata of deleted partitions that no coordinator removes"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Do not listen."""

    def make(original: Function) -> Function:
        async def deleted(groups: Any, partitions: Any) -> None:
            if partitions:
                mark.hit()

        return deleted

    replace("urteil.broker.groups.administration:GroupAdministration.topics_deleted", make)
