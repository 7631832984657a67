"""Holds no election when the topic's setting changes."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leaderless partition stays so after unclean election was enabled for its topic"
MODELS = "unclean.leader.election.enable that takes effect only with the next failure"
SCENARIO = "unclean-allowed"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(_: Function) -> Function:
        async def allowed(term: Any, topic: str) -> None:
            mark.hit()

        return allowed

    replace("urteil.broker.controller.term:Term.unclean_allowed", make)
