"""A request that waits in the network until the fault heals."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import REQUEST, LinkRule


class HoldRequest(RuleFault):
    """Holds requests, and those behind them on the same connection, until healing. They arrive then
    even if their client has ended. With `goes_on` later requests of the connection pass, and the
    held one arrives after them, on a connection of its own; its answer is lost. Listeners with SASL
    close such a connection."""

    name = "hold_request"
    about = "hold a request until healing, which delivers it late"
    effects = frozenset({Effect.SLOWS_LINKS})
    direction = REQUEST
    goes_on: bool = flag("later requests of the connection arrive before the held one")

    def rule(self) -> LinkRule:
        return self.make_rule("hold", goes_on=self.goes_on)
