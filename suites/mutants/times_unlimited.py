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
        def refuse_records(records: Any, config: Any, now_ms: int) -> Any:
            if original(records, config, now_ms) is not None:
                mark.hit()
            return None

        return refuse_records

    replace("urteil.broker.log.admission:refuse_records", make)
