"""Who asks for stable positions is told what there is."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "OffsetFetch tells positions that open transactions may change, also who asks for stable ones"
)
MODELS = "require_stable ignored (KIP-447, KAFKA-9346)"
SCENARIO = "paused-copier"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    """Everybody is answered as those of old."""

    def make(original: Function) -> Function:
        def positions(broker: Any, group_id: str, wanted: Any, require_stable: bool) -> Any:
            if require_stable:
                mark.hit()
            return original(broker, group_id, wanted, False)

        return positions

    replace("urteil.broker.api.group_offsets:_positions", make)
