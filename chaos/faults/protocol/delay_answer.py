"""An answer that arrives late."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import LinkRule


class DelayAnswer(RuleFault):
    """Delays answers, and those behind them on the same connection."""

    name = "delay_answer"
    about = "delay the answer to a request that the broker served"
    effects = frozenset({Effect.SLOWS_LINKS})
    delay_ms: int = whole_number(1000, "delay", unit="ms", least=1, most=300_000)

    def rule(self) -> LinkRule:
        return self.make_rule("delay", delay_ms=self.delay_ms)
