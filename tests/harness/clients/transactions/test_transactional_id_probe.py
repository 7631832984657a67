"""Transactional ids without a coordinator."""

from __future__ import annotations

import json
import socket

from urteil.harness.clients.transactions.transactional_id_probe import initialise_ids


def test_id_without_coordinator_is_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed_address = f"127.0.0.1:{taken.getsockname()[1]}"
    acts = initialise_ids([closed_address], {"b", "a"}, 4_000, deadline_s=0.0)
    assert [(act["act"], act["subject"], act["outcome"]) for act in acts] == [
        ("initialise", "a", "info"),
        ("initialise", "b", "info"),
    ]
    assert json.loads(acts[0]["after"]) == {"failure": "no coordinator answered"}
    assert acts[0]["invoke_ns"] <= acts[0]["complete_ns"]


def test_no_ids_give_no_acts() -> None:
    assert initialise_ids(["127.0.0.1:1"], set(), 4_000, deadline_s=60.0) == []
