"""An answer arrives with another value in one of its fields."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import text
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import LinkRule


class RewriteAnswer(RuleFault):
    """Sets one field of answers, as a broker with a bug would. The client accepts it: a run in
    which the workload's clients receive false offsets reports violations of the cluster. Meant for
    tests of clients."""

    name = "rewrite_answer"
    about = "change one field of an answer, to test a client"
    effects = frozenset({Effect.CHANGES_ANSWERS})
    api: str = text("Fetch", "name or key of the API")
    path: str = text("throttle_time_ms", "the field (topics[].partitions[].high_watermark)")
    value: str = text("1", "its value; bytes in hexadecimal")

    def rule(self) -> LinkRule:
        return self.make_rule("rewrite", path=self.path, value=self.value)
