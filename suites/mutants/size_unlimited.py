"""Uses each batch's own size as the limit."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch larger than max.message.bytes is appended"
MODELS = "a topic limit that the leader ignores"
SCENARIO = "corrupt-client"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def check_batch(magic: int, entry: Any, config: Any, *, from_client: bool) -> Any:
            if len(entry) > config.max_message_bytes:
                mark.hit()
                config = changed(config, max_message_bytes=len(entry))
            return original(magic, entry, config, from_client=from_client)

        return check_batch

    replace("urteil.broker.log.batch_checks:check_batch", make)
