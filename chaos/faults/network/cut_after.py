"""Connections that are cut after a number of bytes, in the middle of a request or a response."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag, whole_number
from urteil.chaos.faults.base.degraded_links import DegradedLinks
from urteil.chaos.link_transfers import SMALLEST_REQUEST
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import DOWNSTREAM, UPSTREAM, Link, Transfer

ANSWER_BYTES = 200


class CutAfter(DegradedLinks):
    """Each connection, open or new, carries `bytes` more bytes and is then closed."""

    name = "cut_after"
    about = "cut every connection after a number of bytes, in the middle of a request or a response"
    effects = frozenset({Effect.BREAKS_CONNECTIONS})
    proves = "bytes that a transfer carried before the cut, compared to a complete one"
    bytes: int = whole_number(5013, "bytes that a connection carries", least=25, most=500_000)
    answers_only: bool = flag("count the bytes of responses instead of requests")

    def choose(self, controls: Controls) -> list[Link]:
        """Links to brokers, unless responses are cut: ZooKeeper has no long request that could be
        cut."""
        chosen = super().choose(controls)
        provable = [link for link in chosen if self.answers_only or link.dst in controls.brokers]
        if not provable:
            raise NoTarget(f"{self.arguments.target} selects no link to a broker: set answers_only")
        return provable

    def request_count(self) -> int:
        """More requests than fit before the cut."""
        each = ANSWER_BYTES if self.answers_only else self.request_bytes()
        return 3 * self.bytes // (2 * each) + 2

    def request_bytes(self) -> int:
        """Large requests, sent one by one: about twenty until the cut, counted by responses."""
        return 0 if self.answers_only else max(self.bytes // 20, SMALLEST_REQUEST)

    def add_toxic(self, controls: Controls) -> None:
        streams = (DOWNSTREAM,) if self.answers_only else (UPSTREAM,)
        limit = {"bytes": self.bytes}
        controls.net.add_toxic(self.links, "limit_data", limit, streams=streams, owner=self.owner)

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        if self.answers_only:
            return before.received_bytes > after.received_bytes == self.bytes
        whole, rest = divmod(self.bytes, self.request_bytes())
        return after.ended in ("closed", "reset") and whole - (not rest) <= after.answers <= whole

    def describe(self, before: Transfer, after: Transfer) -> str:
        if self.answers_only:
            return (
                f"{before.received_bytes} bytes of responses before, {after.ended} after "
                f"{after.received_bytes} now"
            )
        size = self.request_bytes()
        return (
            f"{before.answers} requests of {size} bytes before, {after.ended} after "
            f"{after.answers} now"
        )
