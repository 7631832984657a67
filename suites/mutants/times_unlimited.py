"""Records of any time are taken."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a record whose time is further from the broker's than its topic allows is appended"
MODELS = "limits (KIP-937) of which the leader knows nothing"
SCENARIO = "corrupt-client"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    """Nothing is wrong with any record."""

    def make(original: Function) -> Function:
        def refused(errors: Any) -> Any:
            if original(errors) is not None:
                mark.hit()
            return None

        return refused

    replace("urteil.broker.log.record_errors:RecordErrors.refused", make)
