"""Connections to hosts that do not do what the lab needs: one sentence each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from urteil.harness.dependencies.faketime import faketime_library
from urteil.harness.runtimes.hosts.connection import HostConnection, HostFailure
from urteil.harness.runtimes.hosts.host_check import check_hosts, describe_check
from urteil.harness.runtimes.hosts.inventory import Host, load_hosts
from urteil.harness.runtimes.hosts.parts import Part, zookeeper_part

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network_of_hosts(tmp_path_factory.mktemp("hosts"), count=1) as network:
        yield network


@pytest.fixture
def host(network: Network) -> Host:
    return load_hosts(network.inventory)[0]


def problem_of(host: Host) -> str:
    (check,) = check_hosts([host])
    (problem,) = check.problems
    return problem


def test_usable_host_is_described_in_one_line(host: Host) -> None:
    (check,) = check_hosts([host])
    assert check.problems == []
    line = describe_check(check)
    assert line.startswith("Python 3.")
    assert "GB free, clock " in line
    assert line.endswith("rack h1, runs broker, zookeeper, controller")


def test_rejected_key_is_named(host: Host, tmp_path: Path) -> None:
    key = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    problem = problem_of(msgspec.structs.replace(host, key=str(key)))
    assert f"rejects the key ({key}): add its public half to authorized_keys of root" in problem


def test_file_that_is_no_key_is_named(host: Host, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    problem = problem_of(msgspec.structs.replace(host, key=str(tmp_path / "key")))
    assert "the key of the host h1" in problem
    assert "cannot be used" in problem


def test_unknown_host_key_is_not_accepted(host: Host, tmp_path: Path) -> None:
    (tmp_path / "known").write_text("")
    problem = problem_of(msgspec.structs.replace(host, known_hosts=str(tmp_path / "known")))
    assert f"is not known: check its key, then `ssh-keyscan -p 22 {host.address} >>" in problem


def test_address_without_a_server_is_named(host: Host) -> None:
    problem = problem_of(msgspec.structs.replace(host, port=23))
    assert "does not answer: Connection refused; start its ssh server" in problem


def test_missing_python_is_named(host: Host) -> None:
    problem = problem_of(msgspec.structs.replace(host, python="python3.999"))
    assert "does not run python3.999: " in problem
    assert "not found; install Python 3.11 or newer, or name it by `python`" in problem


def test_clock_that_is_off_is_rejected(host: Host, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nexec env LD_PRELOAD={faketime_library()} FAKETIME=+3s python3 "$@"\n'
    )
    python.chmod(0o755)
    problem = problem_of(msgspec.structs.replace(host, python=str(python)))
    assert "differs from the lab's by +30" in problem or "differs from the lab's by +29" in problem
    assert "set both by one time server" in problem


def test_folder_that_cannot_be_made_is_named(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    connection = HostConnection(msgspec.structs.replace(host, folder=f"{tmp_path}/file/urteil"))
    connection.open()
    with pytest.raises(HostFailure, match=r"has no usable folder .*Not a directory; name one"):
        connection.send_parts([zookeeper_part()])
    connection.close()


def test_part_is_sent_once_and_checked(network: Network, host: Host) -> None:
    part = zookeeper_part()
    connection = HostConnection(host)
    connection.open()
    wrong = Part(name="wrong", archive=part.archive, sha256="0" * 64)
    with pytest.raises(HostFailure, match="did not get wrong: damaged on its way"):
        connection.send_parts([wrong])
    assert connection.send_parts([part]) == [part.name]
    assert connection.send_parts([part]) == []
    connection.close()
    parts = network.hosts[0].folder / "parts"
    assert [path.name for path in parts.iterdir()] == [part.name]
    assert list((parts / part.name).glob("zookeeper-3*.jar"))
