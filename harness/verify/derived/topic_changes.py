"""What administrators changed of a topic during the run, as far as it affects promises."""

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
HEARD_NS = 5_000_000_000
"""After so long every broker that nothing hinders has heard of a setting."""
_HARMLESS = ENDS_NODES | {Effect.CHANGES_MIN_ISR}
"""Effects of faults that keep no setting from a live broker; a broker that starts reads it."""


def unclean_requested(ops: Sequence[Row], topic: str, partition: int) -> bool:
    """Whether somebody asked for an unclean election of the partition, or allowed them for its
    topic. Also when the outcome is not known: it may have been done."""
    subjects = {topic, f"{topic}-{partition}"}
    asked = any("unclean" in (op["act"] or "") and op["subject"] in subjects for op in ops)
    return asked or "true" in _values(ops, topic, UNCLEAN)


def killed_clients(ops: Sequence[Row]) -> frozenset[str]:
    """Clients that the lab killed on purpose."""
    return frozenset(str(op["subject"]) for op in ops if op["act"] == KILL)


def deleted_topics(ops: Sequence[Row]) -> frozenset[str]:
    """Topics whose deletion somebody asked for and was not refused."""
    return frozenset(
        str(op["subject"]) for op in ops if op["act"] == "delete" and op["outcome"] != "fail"
    )


def lowest_min_isr(
    ops: Sequence[Row], faults: Iterable[Row], topic: str, otherwise: int, begin_ns: int
) -> int:
    """The smallest number of in-sync replicas that may count from `begin_ns` on: of all that were
    asked for, but for those before one that every living broker had heard of by then."""
    asked = [(op, value) for op in ops for value in _values([op], topic, MIN_ISR)]
    in_order = all(op["outcome"] == "ok" and op["complete_ns"] for op, _ in asked)
    acting = [fault for fault in faults if fault["acted"] and not has_only(fault, _HARMLESS)]
    lowest = otherwise
    for op, value in sorted(asked, key=lambda change: int(change[0]["invoke_ns"] or 0)):
        if value.isdecimal():
            heard = in_order and _is_heard(op, acting, begin_ns)
            lowest = min(otherwise if heard else lowest, int(value))
    return lowest


def _is_heard(op: Row, faults: Iterable[Row], begin_ns: int) -> bool:
    """Whether the act is so long over, and no fault kept it from a broker."""
    heard_ns = op["complete_ns"] + HEARD_NS
    return bool(heard_ns <= begin_ns) and not any(
        fault["begin_ns"] < heard_ns
        and (fault["healed_ns"] or fault["end_ns"] or heard_ns) >= op["invoke_ns"]
        for fault in faults
    )


def _values(ops: Sequence[Row], topic: str, name: str) -> Iterator[str]:
    """What a setting of the topic was set to."""
    for op in ops:
        if op["act"] == "config" and op["subject"] == topic:
            after: Any = json.loads(op["after"] or "{}")
            if after.get(name) is not None:
                yield str(after[name])
