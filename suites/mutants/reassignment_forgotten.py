"""Drops the adding and removing replicas that the controller loads."""

from __future__ import annotations

import dataclasses
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new controller does not continue the reassignments of its predecessor"
MODELS = "a reassignment that is stuck after a controller failover"
SCENARIO = "office-lost"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def load(term: Any) -> Any:
            added = await original(term)
            topics = term.context.topics
            for name, one in topics.items():
                if not term.ready and (one.adding or one.removing):
                    mark.hit()
                    topics[name] = dataclasses.replace(one, adding={}, removing={})
            return added

        return load

    replace("urteil.broker.controller.term:Term._load_topics", make)
