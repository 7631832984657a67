"""Requests and answers of a link are written into the evidence, and nothing is disturbed."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import text, whole_number
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import ANSWER, BOTH, REQUEST, LinkRule

DIRECTIONS = (BOTH, REQUEST, ANSWER)


class Record(RuleFault):
    """Writes requests and answers into the table `link_events`, decoded, and changes nothing.
    Records are shown by their batches, secrets by their size (`urteil wire` prints the same)."""

    name = "record"
    about = "write down the requests and answers that pass"
    effects = frozenset({Effect.RECORDS_MESSAGES})
    times: int = whole_number(0, "frames that are written, 0: all", least=0)
    direction: str = text(BOTH, "what is written", choices=DIRECTIONS)

    def rule(self) -> LinkRule:
        return self.make_rule("record")
