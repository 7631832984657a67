"""The starts and unexpected exits of brokers and controllers, and those that stopped to serve."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from urteil.chaos.observations import Ended, NodeStatus
from urteil.harness.evidence.table_writer import Evidence

STARTS, EXIT_CODE, CLOSED = "starts", "exit_code", "closed"
WHILE = "while"
RUNNING, STARTING = "running", "starting"
PART = "lives"


def write_lives(
    run_dir: Path,
    run: str,
    at_ns: int,
    nodes: Iterable[NodeStatus],
    ended: Iterable[Ended],
    closed: Iterable[str] = (),
) -> None:
    """Write rows of `samples`: `starts` of each node, the `exit_code` of each unexpected exit, and
    `closed` for each node that refuses connections.

    The label `while` has the node's phase at its exit.
    """
    with Evidence(run_dir, PART, run) as evidence:
        for node in nodes:
            columns = {"source": node.node, "metric": STARTS, "labels": "{}"}
            evidence.add("samples", columns | {"at_ns": at_ns, "value": float(node.starts)})
        for end in ended:
            labels = json.dumps({WHILE: STARTING if end.starting else RUNNING})
            columns = {"source": end.node, "metric": EXIT_CODE, "labels": labels}
            evidence.add("samples", columns | {"at_ns": end.at_ns, "value": float(end.exit_code)})
        for name in closed:
            columns = {"source": name, "metric": CLOSED, "labels": "{}"}
            evidence.add("samples", columns | {"at_ns": at_ns, "value": 1.0})
