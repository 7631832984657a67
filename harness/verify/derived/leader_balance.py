"""Leadership must return to preferred replicas automatically (auto.leader.rebalance.enable).

Every `leader.imbalance.check.interval.seconds` the controller examines, for each broker, the
partitions whose preferred leader it is. If other brokers lead more of them than
`leader.imbalance.per.broker.percentage`, the controller moves those back for which the broker is in
sync.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from urteil.harness.scenario import Scenario
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row

KIND = "not given back"
SLACK_S = 10.0
_TOPICS, _DELETIONS = "/brokers/topics/", "/admin/delete_topics/"
_DEFAULTS = {
    "auto.leader.rebalance.enable": "false",  # the lab's default
    "leader.imbalance.check.interval.seconds": "300",
    "leader.imbalance.per.broker.percentage": "10",
}


def balance_rows(small: SmallEvidence, scenario: Scenario, last: dict[str, Row]) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`: the state at the end of an undisturbed interval.
    `shortfall` is null where the first replica leads or is not in sync, or the imbalance is below
    the limit. There are no rows where replicas were moved, which may delay the rebalance, and none
    of topics that are being deleted."""
    settings = {
        name: scenario.cluster.config.get(name, default) for name, default in _DEFAULTS.items()
    }
    moved = any(op["act"] in ("reassign", "cancel moves") for op in small.ops)
    if settings["auto.leader.rebalance.enable"] != "true" or moved:
        return
    every_s = float(settings["leader.imbalance.check.interval.seconds"])
    limit = float(settings["leader.imbalance.per.broker.percentage"]) / 100
    for broker, states in sorted(_preferred_states(last).items()):
        away = [state for state in states if state["leader"] != broker]
        for state in states:
            is_due = len(away) > limit * len(states) and broker in json.loads(state["isr"] or "[]")
            place = f"{state['topic']}-{state['partition']}"
            shortfall = f"broker {state['leader']} leads" if state in away and is_due else None
            yield {
                "kind": KIND, "key": (state["topic_id"], state["partition"]),
                "from_ns": max(state["at_ns"] for state in states),
                "task": f"{place} must be led by broker {broker}, its first replica",
                "shortfall": shortfall,
                "limit_s": every_s + SLACK_S,
            }  # fmt: skip


def _preferred_states(last: dict[str, Row]) -> dict[int, list[Row]]:
    """Each broker with the states of the partitions whose first replica it is."""
    states: dict[int, list[Row]] = defaultdict(list)
    for path, node in last.items():
        topic = path.removeprefix(_TOPICS)
        if not path.startswith(_TOPICS) or "/" in topic or _DELETIONS + topic in last:
            continue
        assigned: dict[str, list[int]] = json.loads(node["replicas"] or "{}")
        for p, replicas in assigned.items():
            state = last.get(f"{path}/partitions/{p}/state")
            if replicas and state is not None and state["leader"] is not None:
                states[int(replicas[0])].append(state)
    return states
