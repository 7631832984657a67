"""What a simulation left, as rows of the lab's tables of evidence."""

from __future__ import annotations

import json
from typing import Any

from urteil.suites.simulation.checks import Evidence, small_history

TABLES = ("sends", "reads", "passes", "states", "logs", "replicas")
"""Those that runs of the replication mix fill."""
CONTROLLER, BROKERS = "/controller", "/brokers/ids/"


def rows_of(evidence: Evidence) -> dict[str, list[dict[str, Any]]]:
    """The rows by table. The id of a topic is its name."""
    history = small_history(evidence)
    tables = {name: [_placed(row) for row in getattr(history, name)] for name in TABLES}
    tables["states"] += _of_brokers(evidence)
    return tables


def _placed(row: dict[str, Any]) -> dict[str, Any]:
    topic, partition = row["topic"], row["partition"]
    path = f"/brokers/topics/{topic}/partitions/{partition}/state"
    return {"topic_id": topic, "path": path} | row


def _of_brokers(evidence: Evidence) -> list[dict[str, Any]]:
    """The versions of the controller's znode and of the brokers' registrations."""
    rows = []
    for change in evidence.changes:
        if change.path == CONTROLLER or change.path.startswith(BROKERS):
            content = json.loads(change.data) if change.data else {}
            rows.append({
                "zxid": change.zxid, "at_ns": round(change.at_s * 1e9), "path": change.path,
                "version": -1 if change.data is None else change.version,
                "controller": content.get("brokerid"),
            })  # fmt: skip
    return rows
