"""Creates __transaction_state with min.insync.replicas=1."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the transaction log accepts decisions that only one broker has"
MODELS = "transaction.state.log.min.isr that is ignored"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
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

    replace("urteil.broker.controller.topic_requests:_auto_created_topic", make)
