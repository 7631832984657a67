"""Many runs, one after another: each a process of its own and a row in a ledger on disk."""

from urteil.harness.campaign.job import Job, Row
from urteil.harness.campaign.ledger import Ledger
from urteil.harness.campaign.play import play

__all__ = ["Job", "Ledger", "Row", "play"]
