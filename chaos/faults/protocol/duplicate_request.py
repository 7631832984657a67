"""A request that a broker receives twice."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import REQUEST, LinkRule


class DuplicateRequest(RuleFault):
    """Sends requests once more after their answer, on a connection of their own, and ignores the
    second answer. Listeners with SASL close such a connection."""

    name = "duplicate_request"
    about = "deliver a request a second time, after its answer"
    effects = frozenset({Effect.REPEATS_REQUESTS})
    direction = REQUEST

    def rule(self) -> LinkRule:
        return self.make_rule("duplicate")
