"""The starts of brokers, and their unexpected exits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from urteil.chaos.observations import Ended, NodeStatus
from urteil.harness.evidence.table_writer import Evidence

STARTS, EXIT_CODE = "starts", "exit_code"
WHILE = "while"
RUNNING, STARTING = "running", "starting"
PART = "lives"


def write_lives(
    run_dir: Path, run: str, at_ns: int, brokers: Iterable[NodeStatus], ended: Iterable[Ended]
) -> None:
    """Write rows of `samples`: `starts` of each broker, and the `exit_code` of each unexpected
    exit.

    The label `while` has the broker's phase at its exit.
    """
    with Evidence(run_dir, PART, run) as evidence:
        for broker in brokers:
            columns = {"source": broker.node, "metric": STARTS, "labels": "{}"}
            evidence.add("samples", columns | {"at_ns": at_ns, "value": float(broker.starts)})
        for end in ended:
            labels = json.dumps({WHILE: STARTING if end.starting else RUNNING})
            columns = {"source": end.node, "metric": EXIT_CODE, "labels": labels}
            evidence.add("samples", columns | {"at_ns": end.at_ns, "value": float(end.exit_code)})
