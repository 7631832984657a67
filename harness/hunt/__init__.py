"""Campaigns: many runs one after another, each in a process of its own, with a ledger on disk."""

from urteil.harness.hunt.job import Job, Row
from urteil.harness.hunt.ledger import Ledger
from urteil.harness.hunt.run_process import play_run

__all__ = ["Job", "Ledger", "Row", "play_run"]
