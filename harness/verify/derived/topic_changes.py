"""Changes of a topic by administrators during the run, as far as they affect promises."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.evidence.acts import KILL
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, has_only
from urteil.harness.verify.evidence import Row

UNCLEAN = "unclean.leader.election.enable"
MIN_ISR = "min.insync.replicas"
PROPAGATED_NS = 5_000_000_000
"""By then a setting has reached every broker that no fault disturbs."""
_HARMLESS = ENDS_NODES | {Effect.CHANGES_MIN_ISR}
"""Effects of faults that keep no setting from a live broker; a broker that starts reads it."""


def unclean_election_requested(ops: Sequence[Row], topic: str, partition: int) -> bool:
    """Whether an unclean election of the partition was requested, or allowed for its topic. Acts of
    unknown outcome count."""
    subjects = {topic, f"{topic}-{partition}"}
    requested = any("unclean" in (op["act"] or "") and op["subject"] in subjects for op in ops)
    return requested or "true" in _values(ops, topic, UNCLEAN)


def killed_clients(ops: Sequence[Row]) -> frozenset[str]:
    """Clients that the lab killed on purpose."""
    return frozenset(str(op["subject"]) for op in ops if op["act"] == KILL)


def deleted_topics(ops: Sequence[Row]) -> frozenset[str]:
    """Topics whose deletion was requested and did not fail."""
    return frozenset(
        str(op["subject"]) for op in ops if op["act"] == "delete" and op["outcome"] != "fail"
    )


def lowest_min_isr(
    ops: Sequence[Row], faults: Iterable[Row], topic: str, otherwise: int, begin_ns: int
) -> int:
    """The lowest min.insync.replicas that may apply from `begin_ns` on. It is the lowest of all
    requested values, except those before a value that had reached every live broker by then."""
    requested = [(op, value) for op in ops for value in _values([op], topic, MIN_ISR)]
    in_order = all(op["outcome"] == "ok" and op["complete_ns"] for op, _ in requested)
    acting = [fault for fault in faults if fault["acted"] and not has_only(fault, _HARMLESS)]
    lowest = otherwise
    for op, value in sorted(requested, key=lambda change: int(change[0]["invoke_ns"] or 0)):
        if value.isdecimal():
            is_propagated = in_order and _is_propagated(op, acting, begin_ns)
            lowest = min(otherwise if is_propagated else lowest, int(value))
    return lowest


def _is_propagated(op: Row, faults: Iterable[Row], begin_ns: int) -> bool:
    """Whether the act was acknowledged long enough before `begin_ns`, and no fault kept it from a
    broker."""
    propagated_ns = op["complete_ns"] + PROPAGATED_NS
    return bool(propagated_ns <= begin_ns) and not any(
        fault["begin_ns"] < propagated_ns
        and (fault["healed_ns"] or fault["end_ns"] or propagated_ns) >= op["invoke_ns"]
        for fault in faults
    )


def _values(ops: Sequence[Row], topic: str, name: str) -> Iterator[str]:
    """The values to which a setting of the topic was set."""
    for op in ops:
        if op["act"] == "config" and op["subject"] == topic:
            after: Any = json.loads(op["after"] or "{}")
            if after.get(name) is not None:
                yield str(after[name])
