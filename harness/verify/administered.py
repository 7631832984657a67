"""What administrators did to a topic during the run, as far as it changes what was promised."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from urteil.harness.verify.evidence import Row

UNCLEAN = "unclean.leader.election.enable"
MIN_ISR = "min.insync.replicas"


def unclean_asked(ops: Sequence[Row], topic: str, partition: int) -> bool:
    """Whether somebody asked for an unclean election of the partition, or allowed them for its
    topic. Also when the outcome is not known: it may have been done."""
    subjects = {topic, f"{topic}-{partition}"}
    asked = any("unclean" in (op["act"] or "") and op["subject"] in subjects for op in ops)
    return asked or "true" in _values(ops, topic, UNCLEAN)


def killed_clients(ops: Sequence[Row]) -> frozenset[str]:
    """Clients that the lab killed on purpose."""
    return frozenset(
        str(op["subject"]) for op in ops if op["act"] in ("kill client", "kill_client")
    )


def deleted_topics(ops: Sequence[Row]) -> frozenset[str]:
    """Topics whose deletion somebody asked for and was not refused."""
    return frozenset(
        str(op["subject"]) for op in ops if op["act"] == "delete" and op["outcome"] != "fail"
    )


def lowest_min_isr(ops: Sequence[Row], topic: str, otherwise: int) -> int:
    """The smallest number of in-sync replicas that was ever asked for, `otherwise` among them."""
    asked = [int(value) for value in _values(ops, topic, MIN_ISR) if value.isdecimal()]
    return min([otherwise, *asked])


def _values(ops: Sequence[Row], topic: str, name: str) -> Iterator[str]:
    """What a setting of the topic was set to."""
    for op in ops:
        if op["act"] == "config" and op["subject"] == topic:
            after: Any = json.loads(op["after"] or "{}")
            if after.get(name) is not None:
                yield str(after[name])
