"""Answers every request as one without require_stable."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetFetch with require_stable returns offsets that an open transaction may change"
MODELS = "KIP-447, KAFKA-9346: require_stable ignored"
SCENARIO = "paused-copier"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def positions(broker: Any, group_id: str, wanted: Any, require_stable: bool) -> Any:
            if require_stable:
                mark.hit()
            return original(broker, group_id, wanted, False)

        return positions

    replace("urteil.broker.api.group_offsets:_positions", make)
