"""Replicas that leave the ISR although every broker is up and no fault acts. The after-effects of a
fault may show long after it was healed and the cluster was whole."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.scenario import Scenario
from urteil.harness.verify.derived.impact import Stretch
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row

KIND = "fell out"
_MOVES = ("reassign", "cancel moves")


def fallen_out(small: SmallEvidence, scenario: Scenario, calm: Stretch) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`, one for each partition that was whole at some time of a
    calm; nothing `stands` where it is whole at the end. What was short all the time is the recovery
    of what came before. Topics whose replicas were moved are left out: new ones have to catch up.
    """
    moved = {str(op["subject"]) for op in small.ops if op["act"] in _MOVES}
    for key, p in small.numbers.items():
        topic = small.topics.get(key[0])
        if topic is None or topic.name in moved or key in small.gone:
            continue
        in_sync_ns, in_sync = None, 0
        for span in small.spans.get(p, []):
            if span.begin_ns >= calm.end_ns:
                break
            in_sync = len(span.isr)
            if in_sync >= topic.replication_factor and span.end_ns > calm.begin_ns:
                in_sync_ns = span.end_ns
        if in_sync_ns is None:
            continue
        place = f"{topic.name}-{key[1]}"
        is_whole = in_sync_ns >= calm.end_ns
        yield {
            "kind": KIND, "key": key, "from_ns": min(in_sync_ns, calm.end_ns),
            "task": f"All {topic.replication_factor} replicas of {place} were in sync",
            "shortfall": None if is_whole else f"only {in_sync} were, with no fault at work",
            "limit_s": scenario.recovery_deadline_s,
        }  # fmt: skip
