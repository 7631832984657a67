"""A batch that is sent again is answered with the place of another one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch that was written before is answered with the offset of its producer's newest one"
MODELS = "one remembered offset a producer"
SCENARIO = "repeated-batches"
GUARANTEE = "misplaced_ack"


def apply(mark: Mark) -> None:
    """The newest that is remembered."""

    def make(original: Function) -> Function:
        def sent_before(append: Any, header: Any) -> Any:
            found = original(append, header)
            if found is None:
                return None
            newest = append._log.producers.entries[header.producer_id].batches[-1]
            if newest is not found:
                mark.hit()
            return newest

        return sent_before

    replace("urteil.broker.log.append:Append._sent_before", make)
