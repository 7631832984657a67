"""An answer that is lost: the broker served the request, and its client is not informed."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import LinkRule


class LoseAnswer(RuleFault):
    """Drops answers. As after a loss in a network, later answers of the connection wait behind it
    and never arrive; the client ends the connection by its timeout."""

    name = "lose_answer"
    about = "lose the answer to a request that the broker served"
    effects = frozenset({Effect.LOSES_MESSAGES})
    goes_on: bool = flag("later answers of the connection still arrive")

    def rule(self) -> LinkRule:
        return self.make_rule("drop", goes_on=self.goes_on)
