"""Connections that end after so many bytes: in the middle of a request, or of an answer."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.degraded_links import CLIENTS, DegradedLinks
from urteil.chaos.link_transfers import SMALLEST_REQUEST
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import DOWNSTREAM, UPSTREAM, Link, Transfer

ANSWER_BYTES = 200


class CutAfter(DegradedLinks):
    """Every connection carries so many bytes more, then it is closed; so is each new one."""

    name = "cut_after"
    about = "every connection is cut after so many bytes, in the middle of a request or an answer"
    proves = "bytes counted: what a transfer carried before the cut, against what it carries whole"
    options: ClassVar[dict[str, str]] = {
        "bytes": "how many a connection carries, 25 to 500000 (default 5013)",
        "answers_only": "count the answers' bytes rather than the requests' (default false)",
        **CLIENTS,
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.bytes = int(arguments.number("bytes", 5013, least=25, most=500_000))
        self.answers_only = arguments.flag("answers_only")

    def choose(self, controls: Controls) -> list[Link]:
        """ZooKeeper has no long question: cut requests are shown between and to brokers alone."""
        chosen = super().choose(controls)
        shown = [one for one in chosen if self.answers_only or one.dst in controls.brokers]
        if not shown:
            raise NoTarget(
                f"{self.arguments.target} means no link to a broker; or say answers_only"
            )
        return shown

    def questions(self) -> int:
        """More than the cut lets pass."""
        each = ANSWER_BYTES if self.answers_only else self.question_bytes()
        return 3 * self.bytes // (2 * each) + 2

    def question_bytes(self) -> int:
        """Questions one by one, some twenty until the cut: the answers count them."""
        return 0 if self.answers_only else max(self.bytes // 20, SMALLEST_REQUEST)

    def spoil(self, controls: Controls) -> None:
        streams = (DOWNSTREAM,) if self.answers_only else (UPSTREAM,)
        limit = {"bytes": self.bytes}
        controls.net.add_toxic(self.links, "limit_data", limit, streams=streams, owner=self.owner)

    def spoilt(self, before: Transfer, after: Transfer) -> bool:
        if self.answers_only:
            return before.received_bytes > after.received_bytes == self.bytes
        whole, rest = divmod(self.bytes, self.question_bytes())
        return after.ended in ("closed", "reset") and whole - (not rest) <= after.answers <= whole

    def told(self, before: Transfer, after: Transfer) -> str:
        if self.answers_only:
            return (
                f"{before.received_bytes} bytes of answers before, {after.ended} after "
                f"{after.received_bytes} now"
            )
        size = self.question_bytes()
        return (
            f"{before.answers} requests of {size} bytes before, {after.ended} after "
            f"{after.answers} now"
        )
