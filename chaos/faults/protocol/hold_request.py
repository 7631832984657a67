"""A request that waits in the network until the fault heals."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import REQUEST, LinkRule


class HoldRequest(RuleFault):
    """Holds requests, and those behind them on the same connection, until healing. They arrive then
    even if their client has ended: a request of an earlier time."""

    name = "hold_request"
    about = "hold a request until healing, which delivers it late"
    effects = frozenset({Effect.SLOWS_LINKS})
    direction = REQUEST

    def rule(self) -> LinkRule:
        return self.make_rule("hold")
