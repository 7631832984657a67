"""What is told of transactional ids that nobody answers for."""

from __future__ import annotations

import json
import socket

from urteil.harness.clients.transactions.transactional_id_probe import regain


def test_nobody_there_is_no_coordinator_that_keeps_an_id() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    acts = regain([nobody], {"b", "a"}, 4_000, deadline_s=0.0)
    assert [(act["act"], act["subject"], act["outcome"]) for act in acts] == [
        ("initialise", "a", "info"),
        ("initialise", "b", "info"),
    ]
    assert json.loads(acts[0]["after"]) == {"failure": "no coordinator answered"}
    assert acts[0]["invoke_ns"] <= acts[0]["complete_ns"]


def test_no_ids_are_nothing_to_ask_for() -> None:
    assert regain(["127.0.0.1:1"], set(), 4_000, deadline_s=60.0) == []
