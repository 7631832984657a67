"""A request that is lost: the broker never receives it."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import REQUEST, LinkRule


class LoseRequest(RuleFault):
    """Drops requests. Later requests of the connection never arrive, either."""

    name = "lose_request"
    about = "lose a request before the broker receives it"
    effects = frozenset({Effect.LOSES_MESSAGES})
    direction = REQUEST
    goes_on: bool = flag("later requests of the connection still arrive")

    def rule(self) -> LinkRule:
        return self.make_rule("drop", goes_on=self.goes_on)
