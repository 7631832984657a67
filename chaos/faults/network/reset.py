"""Connections are reset as soon as data arrives."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import flag, whole_number
from urteil.chaos.faults.base.degraded_links import DegradedLinks
from urteil.chaos.observations import DOWNSTREAM, UPSTREAM, Transfer


class Reset(DegradedLinks):
    """TCP RST instead of delivery. It ends open connections."""

    name = "reset"
    about = "reset connections when requests arrive, or when responses return"
    effects = frozenset({Effect.BREAKS_CONNECTIONS})
    proves = "a transfer through each link, complete before and reset after"
    after_ms: int = whole_number(0, "time after the data arrived", unit="ms", least=0, most=4_000)
    answers_only: bool = flag("requests are served; their responses reset the connection")

    def add_toxic(self, controls: Controls) -> None:
        streams = (DOWNSTREAM,) if self.answers_only else (UPSTREAM,)
        timeout = {"timeout": self.after_ms}
        controls.net.add_toxic(self.links, "reset_peer", timeout, streams=streams, owner=self.owner)

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        """Outside a pod, the reset of a connection inside it looks like a close."""
        return after.ended in ("reset", "closed") and not after.answers

    def describe(self, before: Transfer, after: Transfer) -> str:
        return (
            f"{before.answers} response before, {after.ended} with {after.received_bytes} bytes now"
        )
