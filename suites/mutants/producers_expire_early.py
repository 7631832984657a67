"""Expires producers one second after their last batch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker forgets producers one second after their last batch"
MODELS = "producer.id.expiration.ms in the wrong unit"
SCENARIO = "repeated-batches"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def sent_before(append: Any, header: Any) -> Any:
            entries = append._log.producers.entries
            known = entries.get(header.producer_id)
            if known is not None and append._now_ms - known.last_timestamp_ms > 1_000:
                mark.hit()
                del entries[header.producer_id]
            return original(append, header)

        return sent_before

    replace("urteil.broker.log.append:Append._sent_before", make)
