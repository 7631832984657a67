"""Changes of KRaft's quorum that faults need: declared here, implemented by the harness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class QuorumControls(Protocol):
    """The voters of a dynamic quorum (KIP-853). Each change becomes a row of `admin_ops` and waits
    until it is committed. It raises `ActFailed` if that takes too long."""

    def voters(self) -> Mapping[str, str]:
        """Node of each voter to the id of its log directory; empty for a static quorum."""
        ...

    def add_voter(self, node: str) -> None:
        """Add a running controller, with its current log directory."""
        ...

    def remove_voter(self, node: str) -> None:
        """Remove a voter. Its process stays, and follows the metadata log."""
        ...
