"""Answers with the preferred leaders and changes no leader."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ElectLeaders is answered with the preferred leaders, and none of them is elected"
MODELS = "an answer that does not wait for the controller"
SCENARIO = "preferred"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def elect(elections: Any, tps: Any, *, unclean: bool) -> Any:
            if unclean or tps is None:
                return await original(elections, tps, unclean=unclean)
            mark.hit()
            return {tp: elections._services.context.replicas(tp)[0] for tp in tps}

        return elect

    def at_once(original: Function) -> Function:
        async def known_here(broker: Any, outcomes: Any, timeout_ms: int) -> Any:
            return outcomes

        return known_here

    replace("urteil.broker.controller.requested_elections:RequestedElections.elect", make)
    replace("urteil.broker.api.elect_leaders:_known_here", at_once)
