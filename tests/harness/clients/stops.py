"""A stop for clients whose clock the test moves itself."""

from __future__ import annotations

from urteil.harness.clients.stop import Stop


class NoPauses(Stop):
    """Every wait returns at once."""

    def wait(self, seconds: float) -> None:
        pass
