"""A connection that ends exactly before or after a request or an answer."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import text
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import ANSWER, REQUEST, LinkRule

MOMENTS = ("before request", "after request", "before answer", "after answer")


class CloseAt(RuleFault):
    """Closes the connection of a request at one of four moments."""

    name = "close_at"
    about = "close a connection before or after a request or an answer"
    effects = frozenset({Effect.BREAKS_CONNECTIONS})
    moment: str = text("before answer", "when the connection ends", choices=MOMENTS)

    def rule(self) -> LinkRule:
        side, _, frame = self.moment.partition(" ")
        self.direction = REQUEST if frame == "request" else ANSWER
        return self.make_rule(f"close_{side}")
