"""Brokers that shut down cleanly (SIGTERM) hand over their leaderships before they leave."""

from __future__ import annotations

import json
from collections.abc import Iterator

from urteil.chaos.effects import Effect
from urteil.harness.verify.derived.fault_effects import has_any, has_only
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.limits import SECOND_NS

KIND = "not handed over"
SHUTDOWNS = frozenset({Effect.STOPS_NODES, Effect.RESTARTS_NODES, Effect.CHANGES_RELEASE})
ALONE_NS = 5 * SECOND_NS
_IDS, _TOPICS = "/brokers/ids/", "/brokers/topics/"


def handover_rows(small: SmallEvidence) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`: one for each partition with other in-sync replicas that
    had a replica on a broker when the broker left. Judged where no other fault acted, and no other
    broker or controller came or left shortly before: a controlled shutdown gives up after some
    attempts."""
    versions = sorted(small.states, key=lambda row: int(row["zxid"]))
    present: set[int] = set()
    changes: list[tuple[str, int]] = []
    states: dict[str, Row] = {}
    for row in versions:
        path, at_ns = str(row["path"]), row["at_ns"]
        if path.startswith(_TOPICS) and row["partition"] is not None:
            states[path] = row
        elif path.startswith(_IDS):
            broker = int(path.removeprefix(_IDS))
            left = row["version"] == -1
            near = [
                other_path
                for other_path, ns in changes
                if ns > at_ns - ALONE_NS and other_path != path
            ]
            if left and broker in present and not near and _is_controlled(small, broker, at_ns):
                yield from _rows_of_broker(small, broker, at_ns, states, present - {broker})
            present = present - {broker} if left else present | {broker}
        if path.startswith((_IDS, "/controller")):
            changes.append((path, at_ns))


def _is_controlled(small: SmallEvidence, broker: int, at_ns: int) -> bool:
    """Whether a fault that shuts brokers down cleanly had begun, and no other fault acts.

    A fault that does not restart its brokers stops all of them at once. Of several brokers none may
    be able to lead then.
    """
    at = Interval(at_ns - ALONE_NS, at_ns + 1)
    near = [fault for fault in small.faults if fault["acted"] and acting_interval(fault).meets(at)]
    return len(near) == 1 and (
        has_only(near[0], SHUTDOWNS)
        and f"b{broker}" in targets_of(near[0])
        and (has_any(near[0], {Effect.RESTARTS_NODES}) or len(targets_of(near[0])) == 1)
    )


def _rows_of_broker(
    small: SmallEvidence, broker: int, at_ns: int, states: dict[str, Row], others: set[int]
) -> Iterator[Row]:
    for state in states.values():
        in_sync = set(json.loads(state["isr"] or "[]"))
        if state["version"] == -1 or broker not in in_sync or not others & in_sync:
            continue
        place = f"{state['topic']}-{state['partition']}"
        led = state["leader"] == broker
        yield {
            "kind": KIND, "p": small.numbers.get((state["topic_id"], state["partition"])),
            "from_ns": at_ns, "to_ns": at_ns,
            "task": f"Broker {broker}, which shut down cleanly, must hand over {place}",
            "shortfall": f"it still led it when it left, with {sorted(others & in_sync)} in sync"
            if led
            else None,
            "limit_s": 0.0, "late": int(led),
        }  # fmt: skip
