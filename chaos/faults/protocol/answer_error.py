"""An answer arrives with another error code than the broker's."""

from __future__ import annotations

from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import text
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import LinkRule


class AnswerError(RuleFault):
    """Replaces the error codes of answers. The broker has served the request all the same."""

    name = "answer_error"
    about = "replace the error codes of an answer"
    effects = frozenset({Effect.CHANGES_ANSWERS})
    error: str = text("NOT_LEADER_OR_FOLLOWER", "name of the error")
    path: str = text("", "the error code that is replaced (topics[].error_code); empty: every one")

    def rule(self) -> LinkRule:
        return self.make_rule("error", error=self.error, path=self.path)
