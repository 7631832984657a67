"""The output of `urteil cluster up|status`, and its evaluation by a shell."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import suppress

import pytest
from msgspec.structs import replace

from tests.ports import free_port
from urteil.harness.standing import StandingCluster, text
from urteil.harness.standing.ports import port_problem
from urteil.harness.standing.state_file import User

FILES = {"java": "/a b/admin.properties", "librdkafka": "/a b/admin.librdkafka"}
CLUSTER = StandingCluster(
    name="it's",
    target="urteil",
    brokers=2,
    zookeepers=1,
    directory="/a b/files",
    keeper=1,
    keeper_began=1.0,
    bootstrap=["127.0.0.1:9092", "127.0.0.1:9093"],
    lab_bootstrap=["127.1.201.1:20001"],
    zookeeper="127.0.0.1:9094",
    ports=[9092, 9093, 9094],
    defaults={"min.insync.replicas": "2"},
    protocol="SASL_SSL",
    mechanisms=["SCRAM-SHA-256", "SCRAM-SHA-512"],
    users=[
        User(name="admin", password="admin-secret", files=FILES),
        User(name="bob", rights="none"),
    ],
    clients="/a b",
    ca="/a b/ca.pem",
    fault_port=4711,
    fault_key="c0ffee",
)


def test_a_shell_evaluates_the_exported_lines() -> None:
    script = (
        f'{text.as_shell_lines(CLUSTER)}\nprintf "%s\\n" "$BOOTSTRAP" "$CLUSTER" "$JAVA_CONFIG"'
    )
    done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "127.0.0.1:9092,127.0.0.1:9093",
        "it's",
        "/a b/admin.properties",
    ]
    assert text.variables(CLUSTER)["ZOOKEEPER"] == "127.0.0.1:9094"
    assert text.variables(CLUSTER)["SASL_PASSWORD"] == "admin-secret"
    assert all(line.startswith("export ") for line in text.as_shell_lines(CLUSTER).splitlines())


def test_json_has_everything_but_the_key_of_faults() -> None:
    document = json.loads(json.dumps(text.as_json(CLUSTER)))
    assert document["bootstrap"] == CLUSTER.bootstrap
    assert document["users"][1]["rights"] == "none"
    assert "c0ffee" not in json.dumps(document)


def test_text_names_ports_settings_and_users() -> None:
    shown = text.as_text(CLUSTER)
    assert "9092 to 9094 of 127.0.0.1, the same at every start with --port 9092" in shown
    assert "min.insync.replicas=2" in shown
    assert "admin / admin-secret, rights: all" in shown
    assert "bob, rights: none" in shown
    assert "SASL_SSL SCRAM-SHA-256 or SCRAM-SHA-512" in shown


def test_text_says_where_nodes_run_and_which_are_dead() -> None:
    pids, hosts = {"b1": 7, "b2": 8}, {"b1": "alpha", "b2": "beta"}
    shown = text.as_text(replace(CLUSTER, pids=pids, hosts=hosts, dead=["b2"], racks={"b1": "r"}))
    assert "b1         pid 7 on alpha, lives, rack r\n" in shown
    assert "b2         pid 8 on beta, dead\n" in shown


def _bind_second_port(holder: socket.socket, address: str) -> int:
    """The first of two free ports, of which `holder` takes the second."""
    while True:
        port = free_port()
        with suppress(OSError):  # another process has the second
            holder.bind((address, port + 1))
            return port


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_taken_port_is_named_with_its_holder(address: str) -> None:
    with socket.socket() as holder:
        port = _bind_second_port(holder, address)
        holder.listen()
        problem = port_problem(port, 3)
    assert f"and {port + 1} is taken by " in problem
    assert "choose another --port" in problem
