"""A client or a node whose requests do not arrive."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import REQUEST, LinkRule


class Blackhole(RuleFault):
    """Holds every request of one client id, or all of the links, until healing. Connections stay
    open, other clients of the same link are served."""

    name = "blackhole"
    about = "let no request of a client or a node through, until healing"
    effects = frozenset({Effect.CUTS_LINKS})
    direction = REQUEST

    def rule(self) -> LinkRule:
        return self.make_rule("hold", times=0)
