"""Connections are reset as soon as data arrives."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.degraded_links import CLIENTS, DegradedLinks
from urteil.chaos.observations import DOWNSTREAM, UPSTREAM, Transfer


class Reset(DegradedLinks):
    """TCP RST instead of delivery. It ends open connections."""

    name = "reset"
    about = "reset connections when requests arrive, or when responses return"
    proves = "a transfer through each link, complete before and reset after"
    options: ClassVar[dict[str, str]] = {
        "after_ms": "milliseconds after the data arrived (default 0)",
        "answers_only": "requests are served; their responses reset the connection (default false)",
        **CLIENTS,
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.after_ms = int(arguments.number("after_ms", 0, least=0, most=4_000))

    def add_toxic(self, controls: Controls) -> None:
        streams = (DOWNSTREAM,) if self.arguments.flag("answers_only") else (UPSTREAM,)
        timeout = {"timeout": self.after_ms}
        controls.net.add_toxic(self.links, "reset_peer", timeout, streams=streams, owner=self.owner)

    def shows_effect(self, before: Transfer, after: Transfer) -> bool:
        """Outside a pod, the reset of a connection inside it looks like a close."""
        return after.ended in ("reset", "closed") and not after.answers

    def describe(self, before: Transfer, after: Transfer) -> str:
        return (
            f"{before.answers} response before, {after.ended} with {after.received_bytes} bytes now"
        )
