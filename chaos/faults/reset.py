"""Connections that are reset as soon as something is sent over them."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.degraded_links import CLIENTS, DegradedLinks
from urteil.chaos.observations import DOWNSTREAM, UPSTREAM, Transfer


class Reset(DegradedLinks):
    """TCP RST instead of delivery, for old connections their end."""

    name = "reset"
    about = "connections are reset when data comes: requests, or the answers to what was served"
    proves = "a transfer through each link, whole before and reset after"
    options: ClassVar[dict[str, str]] = {
        "after_ms": "this long after the data came (default 0)",
        "answers_only": "requests are served, their answers reset the connection (default false)",
        **CLIENTS,
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.after_ms = int(arguments.number("after_ms", 0, least=0, most=4_000))

    def spoil(self, controls: Controls) -> None:
        streams = (DOWNSTREAM,) if self.arguments.flag("answers_only") else (UPSTREAM,)
        timeout = {"timeout": self.after_ms}
        controls.net.add_toxic(self.links, "reset_peer", timeout, streams=streams, owner=self.owner)

    def spoilt(self, before: Transfer, after: Transfer) -> bool:
        """What resets a connection inside a pod is seen as its end outside."""
        return after.ended in ("reset", "closed") and not after.answers

    def told(self, before: Transfer, after: Transfer) -> str:
        return (
            f"{before.answers} answer before, {after.ended} with {after.received_bytes} bytes now"
        )
