"""A decision that one broker has is made."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the transactions' topic is made with min.insync.replicas=1"
MODELS = "transaction.state.log.min.isr that nobody reads"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """As if it were set to one."""
    from dataclasses import replace as changed

    def make(original: Function) -> Function:
        def automatic(name: str, config: Any) -> Any:
            topic = original(name, config)
            if name != "__transaction_state":
                return topic
            mark.hit()
            settings = dict(topic.configs) | {"min.insync.replicas": "1"}
            return changed(topic, configs=tuple(settings.items()))

        return automatic

    replace("urteil.broker.controller.topic_requests:_automatic", make)
