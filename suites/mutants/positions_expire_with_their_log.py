"""Creates __consumer_offsets without cleanup.policy=compact."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "__consumer_offsets has the default cleanup policy: old offsets expire with their segments"
MODELS = "an internal topic created with the defaults of topics"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    from dataclasses import replace as changed

    def make(original: Function) -> Function:
        def automatic(name: str, config: Any) -> Any:
            topic = original(name, config)
            if name != "__consumer_offsets":
                return topic
            mark.hit()
            kept = tuple(one for one in topic.configs if one[0] != "cleanup.policy")
            return changed(topic, configs=kept)

        return automatic

    replace("urteil.broker.controller.topic_requests:_auto_created_topic", make)
