"""An answer that ends early."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import LinkRule


class TruncateAnswer(RuleFault):
    """Passes the first bytes of answers and closes their connections."""

    name = "truncate_answer"
    about = "end a connection in the middle of an answer"
    effects = frozenset({Effect.BREAKS_CONNECTIONS})
    passed_bytes: int = whole_number(
        8, "bytes of the answer that arrive, its size included", least=0, most=1 << 28
    )

    def rule(self) -> LinkRule:
        return self.make_rule("truncate", truncated_bytes=self.passed_bytes)
