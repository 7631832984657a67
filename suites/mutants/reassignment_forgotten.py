"""A reassignment that another controller began never ends."""

from __future__ import annotations

import dataclasses
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a controller that takes over takes replicas that come and go for plain ones"
MODELS = "a reassignment that is stuck after the controller failed over"
SCENARIO = "office-lost"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    """Of what topics' nodes hold the replicas alone are taken in at the begin."""

    def make(original: Function) -> Function:
        async def load(tenure: Any) -> Any:
            added = await original(tenure)
            topics = tenure.context.topics
            for name, one in topics.items():
                if not tenure.ready and (one.adding or one.removing):
                    mark.hit()
                    topics[name] = dataclasses.replace(one, adding={}, removing={})
            return added

        return load

    replace("urteil.broker.controller.tenure:Tenure._load_topics", make)
