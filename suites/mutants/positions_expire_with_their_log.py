"""The offsets topic is a topic like others."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the offsets topic is made without cleanup.policy=compact: old positions go by age"
MODELS = "an internal topic made with the defaults of topics"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Leave out one of its settings."""
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

    replace("urteil.broker.controller.topic_requests:_automatic", make)
