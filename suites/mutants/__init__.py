"""Seeded bugs of the broker, by subject. The lab must find every one of them."""

import importlib

from urteil.suites.mutants.declaration import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]

SUBJECTS = (
    "cleaner",
    "configuration",
    "controller",
    "elections",
    "fetches",
    "followers",
    "group_coordinator",
    "group_members",
    "leaders",
    "lost_messages",
    "offset_lookup",
    "partition_log",
    "producer_states",
    "quotas",
    "record_validation",
    "recovery",
    "replica_manager",
    "requests",
    "retention",
    "security",
    "transaction_coordinator",
    "transaction_states",
    "zookeeper",
)
"""The modules whose functions declare mutants."""

for _subject in SUBJECTS:
    importlib.import_module(f"urteil.suites.mutants.{_subject}")  # pytest imports suites.mutants
