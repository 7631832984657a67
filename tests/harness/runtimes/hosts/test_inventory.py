"""The inventory of hosts: what it accepts, what it says about errors, and where nodes go."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from urteil.harness.runtimes.hosts.inventory import Role, load_hosts, place_nodes, write_hosts


def write(folder: Path, text: str) -> Path:
    path = folder / "hosts.toml"
    path.write_text(text)
    return path


def test_address_alone_is_enough(tmp_path: Path) -> None:
    (host,) = load_hosts(write(tmp_path, '[hosts.a]\naddress = "198.18.0.1"\n'))
    assert (host.name, host.user, host.port, host.rack) == ("a", getpass.getuser(), 22, "a")
    assert host.runs == ("broker", "zookeeper", "controller")
    assert (host.key, host.known_hosts) == ("", "")


def test_key_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("key")
    (host,) = load_hosts(write(tmp_path, '[hosts.a]\naddress = "198.18.0.1"\nkey = "id"\n'))
    assert host.key == str(tmp_path / "id")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no [hosts.NAME]"),
        ("hosts = 1", "has no [hosts.NAME]"),
        ("[hosts]\na = 1", "hosts.a is not a table: write [hosts.a]"),
        ("[hosts.a]\n[racks]\n", "racks is not known"),
        ("[hosts.a]\n", "hosts.a: Object missing required field `address`"),
        ("[hosts.a]\naddress =\nuser = 1", "line 2"),
        ('[hosts.a]\naddress = "alpha"', "hosts.a.address: 'alpha' is no IPv4 address"),
        ('[hosts.a]\naddress = "127.0.0.1"', "127.0.0.1 is not reachable from other hosts"),
        ('[hosts.a]\naddress = "198.18.0.1"\nport = 0', "hosts.a: Expected `int` >= 1"),
        ('[hosts.a]\naddress = "198.18.0.1"\nadress = "b"', "unknown field `adress`"),
        ('[hosts.a]\naddress = "198.18.0.1"\nfolder = "runs"', "hosts.a.folder: 'runs' is not"),
        ('[hosts.a]\naddress = "198.18.0.1"\nfolder = "/"', "hosts.a.folder: '/' is not"),
        ('[hosts.a]\naddress = "198.18.0.1"\nruns = []', "hosts.a.runs is empty"),
        ('[hosts.a]\naddress = "198.18.0.1"\nruns = ["kraft"]', "Invalid enum value 'kraft'"),
        (
            '[hosts.a]\naddress = "198.18.0.1"\n[hosts.b]\naddress = "198.18.0.1"',
            "hosts.b.address: 198.18.0.1 is that of hosts.a already",
        ),
        (
            '[hosts.a]\naddress = "198.18.0.1"\nkey = "none"',
            "none cannot be read: No such file or directory",
        ),
    ],
)
def test_error_names_the_file_and_the_host(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=r"hosts\.toml") as raised:
        load_hosts(path)
    assert problem in str(raised.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none.toml cannot be read: No such file"):
        load_hosts(tmp_path / "none.toml")


def test_nodes_go_from_rack_to_rack(tmp_path: Path) -> None:
    text = "".join(
        f'[hosts.{name}]\naddress = "198.18.0.{n}"\nrack = "{rack}"\nruns = {runs}\n'
        for n, (name, rack, runs) in enumerate(
            [
                ("a1", "a", ["broker"]),
                ("a2", "a", ["broker", "zookeeper"]),
                ("b1", "b", ["broker"]),
                ("c1", "c", ["zookeeper"]),
            ],
            1,
        )
    )
    hosts = load_hosts(write(tmp_path, text))
    roles: dict[str, Role] = {f"b{n}": "broker" for n in range(1, 5)}
    roles |= {f"zk{n}": "zookeeper" for n in range(1, 4)}
    placed = {node: host.name for node, host in place_nodes(hosts, roles).items()}
    assert placed == {
        "b1": "a1", "b2": "b1", "b3": "a2", "b4": "a1", "zk1": "c1", "zk2": "a2", "zk3": "c1"
    }  # fmt: skip


def test_role_that_no_host_runs_is_named(tmp_path: Path) -> None:
    runs = '[hosts.a]\naddress = "198.18.0.1"\nruns = ["broker"]'
    with pytest.raises(ValueError, match="no host runs a controller: add 'controller' to the"):
        place_nodes(load_hosts(write(tmp_path, runs)), {"b1": "broker", "q1": "controller"})


def test_written_inventory_reads_alike(tmp_path: Path) -> None:
    (tmp_path / 'a "key"').write_text("")
    (tmp_path / "hosts.toml").write_text(
        '[hosts."rack 1 ü"]\naddress = "198.18.0.1"\nkey = \'a "key"\'\nport = 2222\n'
        'runs = ["broker"]\n[hosts.b]\naddress = "198.18.0.2"\npython = "python3.11"\n'
    )
    hosts = load_hosts(tmp_path / "hosts.toml")
    (tmp_path / "below").mkdir()
    write_hosts(tmp_path / "below" / "some.toml", hosts)
    assert load_hosts(tmp_path / "below" / "some.toml") == hosts
