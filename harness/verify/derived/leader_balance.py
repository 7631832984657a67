"""Leaders that must return to preferred replicas by themselves (auto.leader.rebalance.enable).

Every `leader.imbalance.check.interval.seconds` the controller examines, for each broker, the
partitions whose preferred leader it is. Where other brokers lead more of them than
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
_TOPICS, _WISHES = "/brokers/topics/", "/admin/delete_topics/"
_DEFAULTS = {
    "auto.leader.rebalance.enable": "false",  # the lab's own
    "leader.imbalance.check.interval.seconds": "300",
    "leader.imbalance.per.broker.percentage": "10",
}


def balance_rows(small: SmallEvidence, scenario: Scenario, last: dict[str, Row]) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`: the state when an undisturbed interval ended. A row has
    no `stands` where the first replica leads or is not in sync, or the imbalance is below the
    limit. There is none where replicas were moved, which may delay it, or topics are being
    deleted."""
    settings = {name: scenario.cluster.config.get(name, own) for name, own in _DEFAULTS.items()}
    moved = any(op["act"] in ("reassign", "cancel moves") for op in small.ops)
    if settings["auto.leader.rebalance.enable"] != "true" or moved:
        return
    every_s = float(settings["leader.imbalance.check.interval.seconds"])
    most = float(settings["leader.imbalance.per.broker.percentage"]) / 100
    for broker, states in sorted(_preferred_states(last).items()):
        away = [state for state in states if state["leader"] != broker]
        for state in states:
            waits = len(away) > most * len(states) and broker in json.loads(state["isr"] or "[]")
            place = f"{state['topic']}-{state['partition']}"
            yield {
                "kind": KIND, "key": (state["topic_id"], state["partition"]),
                "from_ns": max(state["at_ns"] for state in states),
                "task": f"{place} is to be led by broker {broker}, its first replica",
                "shortfall": f"broker {state['leader']} leads" if state in away and waits else None,
                "limit_s": every_s + SLACK_S,
            }  # fmt: skip


def _preferred_states(last: dict[str, Row]) -> dict[int, list[Row]]:
    """Each broker with the states of the partitions whose first replica it is."""
    states: dict[int, list[Row]] = defaultdict(list)
    for path, node in last.items():
        topic = path.removeprefix(_TOPICS)
        if not path.startswith(_TOPICS) or "/" in topic or _WISHES + topic in last:
            continue
        assigned: dict[str, list[int]] = json.loads(node["replicas"] or "{}")
        for p, replicas in assigned.items():
            state = last.get(f"{path}/partitions/{p}/state")
            if replicas and state is not None and state["leader"] is not None:
                states[int(replicas[0])].append(state)
    return states
