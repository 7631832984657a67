"""Batches of any size are taken."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch that is larger than max.message.bytes is appended"
MODELS = "a topic's limit that its leader does not look at"
SCENARIO = "corrupt-client"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    """The limit is as large as the batch."""

    def make(original: Function) -> Function:
        def refuse(magic: int, entry: Any, config: Any, *, from_client: bool) -> Any:
            if len(entry) > config.max_message_bytes:
                mark.hit()
                config = changed(config, max_message_bytes=len(entry))
            return original(magic, entry, config, from_client=from_client)

        return refuse

    replace("urteil.broker.log.batch_checks:refuse", make)
