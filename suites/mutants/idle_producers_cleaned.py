"""The cleaner takes a producer's last batch, and so what replicas learn of it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a replica that comes to a cleaned log knows nothing of producers whose records are gone"
MODELS = "a cleaner that drops the empty last batches of producers (KIP-98)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Only the end of the cleaned part is needed."""

    def make(original: Function) -> Function:
        def is_needed(retention: Any, header: Any) -> bool:
            if not original(retention, header) or header.next_offset == retention.round_end:
                return bool(header.next_offset == retention.round_end)
            mark.hit()
            return False

        return is_needed

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._is_needed", make)
