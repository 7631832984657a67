"""Preferred leaders are told to be elected, and are not."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ElectLeaders is answered with the preferred leaders, of whom none is elected"
MODELS = "an answer that does not wait for the controller's work"
SCENARIO = "preferred"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    """The controller knows who is preferred, and leaves it at that; nobody waits for them."""

    def make(original: Function) -> Function:
        async def elect(elections: Any, tps: Any, *, unclean: bool) -> Any:
            if unclean or tps is None:
                return await original(elections, tps, unclean=unclean)
            mark.hit()
            return {tp: elections._desk.context.replicas(tp)[0] for tp in tps}

        return elect

    def at_once(original: Function) -> Function:
        async def known_here(broker: Any, outcomes: Any, timeout_ms: int) -> Any:
            return outcomes

        return known_here

    replace("urteil.broker.controller.leader_elections:LeaderElections.elect", make)
    replace("urteil.broker.api.elect_leaders:_known_here", at_once)
