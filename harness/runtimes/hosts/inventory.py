"""The machines of `--runtime ssh`, described by a TOML file: `--hosts hosts.toml`.

    [hosts.alpha]
    address = "198.18.0.1"        # IPv4, at which the lab and the other hosts reach this one
    user = "urteil"               # default: the user of the lab
    port = 22                     # of its ssh server
    key = "id_ed25519"            # a private key, from this file's folder; default: the user's own
    known_hosts = "known_hosts"   # default: the user's own
    rack = "east"                 # nodes are spread over racks; default: one rack for each host
    runs = ["broker", "zookeeper", "controller"]  # ["client"]: no node, for --client-hosts alone
    folder = "/var/tmp/urteil"    # the lab changes nothing outside of it
    python = "python3"            # 3.11 or newer, of the lab's own minor version

All but `address` is optional.
"""

from __future__ import annotations

import getpass
import ipaddress
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from urteil.chaos.similar_names import suggest

HIGHEST_PORT = 65_535
EXAMPLE = "docs/guide/hosts.md has an example"
Role = Literal["broker", "zookeeper", "controller", "client"]
BROKER: Role = "broker"
ZOOKEEPER: Role = "zookeeper"
CONTROLLER: Role = "controller"
ROLES: tuple[Role, ...] = (BROKER, ZOOKEEPER, CONTROLLER)
"""The roles of nodes. A controller is one of KRaft's quorum that is a node of its own."""


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One machine. `key` and `known_hosts` are absolute paths once loaded, or empty."""

    name: str
    address: str
    user: str = ""
    port: Annotated[int, msgspec.Meta(ge=1, le=HIGHEST_PORT)] = 22
    key: str = ""
    known_hosts: str = ""
    rack: str = ""
    runs: tuple[Role, ...] = ROLES
    folder: str = "/var/tmp/urteil"
    python: str = "python3"

    def __str__(self) -> str:
        return f"the host {self.name} ({self.user}@{self.address}:{self.port})"


def load_hosts(path: Path) -> tuple[Host, ...]:
    """Read and check an inventory. Raises ValueError with the file, the host and the remedy."""
    try:
        content: Any = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}; {EXAMPLE}") from None
    tables = content.get("hosts")
    if not isinstance(tables, dict) or not tables:
        raise ValueError(f"{path} has no [hosts.NAME]; {EXAMPLE}")
    if others := sorted(content.keys() - {"hosts"}):
        raise ValueError(f"{path}: {others[0]} is not known: tables are [hosts.NAME]")
    hosts = tuple(_read(path, name, table) for name, table in tables.items())
    for problem in chain.from_iterable((_problems(hosts), _file_problems(hosts))):
        raise ValueError(f"{path}: {problem}")
    return hosts


def write_hosts(path: Path, hosts: Iterable[Host]) -> None:
    """Write an inventory of these hosts, with absolute paths."""
    tables = []
    for host in hosts:
        values = {name: value for name, value in msgspec.to_builtins(host).items() if value}
        lines = [
            f"{name} = {json.dumps(value, ensure_ascii=False)}"
            for name, value in values.items()
            if name != "name"
        ]
        tables.append("\n".join([f"[hosts.{json.dumps(host.name, ensure_ascii=False)}]", *lines]))
    path.write_text("\n\n".join(tables) + "\n")


def _read(path: Path, name: str, table: object) -> Host:
    """One host, with its paths relative to the folder of the file."""
    if not isinstance(table, dict):
        raise ValueError(f"{path}: hosts.{name} is not a table: write [hosts.{name}]")
    fields = {"user": getpass.getuser(), "rack": name, **table, "name": name}
    for field in ("key", "known_hosts"):
        value = fields.get(field)
        if isinstance(value, str) and value:
            fields[field] = str(path.resolve().parent / Path(value).expanduser())
    try:
        return msgspec.convert(fields, Host)
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: hosts.{name}: {error}; {EXAMPLE}") from None


def _problems(hosts: Sequence[Host]) -> Iterator[str]:
    addresses: dict[str, str] = {}
    for host in hosts:
        where = f"hosts.{host.name}"
        try:
            address = ipaddress.IPv4Address(host.address)
        except ValueError:
            yield f"{where}.address: {host.address!r} is no IPv4 address; names do not suffice"
            continue
        if address.is_loopback or address.is_unspecified:
            yield (
                f"{where}.address: {host.address} is not reachable from other hosts; "
                "write the host's address in their network"
            )
        if (other := addresses.setdefault(host.address, host.name)) != host.name:
            yield f"{where}.address: {host.address} is that of hosts.{other} already"
        if not Path(host.folder).is_absolute() or host.folder.strip("/") == "":
            yield f"{where}.folder: {host.folder!r} is not an absolute path of a folder of its own"
        if not host.runs:
            yield f"{where}.runs is empty: leave it out, or write runs = ['broker']"


def check_roles(hosts: Sequence[Host], roles: Iterable[Role]) -> None:
    """Raise ValueError for a role that no host may run."""
    for role in roles:
        if not any(role in host.runs for host in hosts):
            raise ValueError(f"no host runs a {role}: add {role!r} to the `runs` of one")


def _file_problems(hosts: Sequence[Host]) -> Iterator[str]:
    for host in hosts:
        for field in ("key", "known_hosts"):
            if path := getattr(host, field):
                try:
                    Path(path).read_bytes()
                except OSError as error:
                    yield f"hosts.{host.name}.{field}: {path} cannot be read: {error.strerror}"


def find_hosts(hosts: Iterable[Host], names: Iterable[str]) -> list[Host]:
    """The hosts with these names. Raises ValueError for a name that the inventory lacks."""
    by_name = {host.name: host for host in hosts}
    for name in names:
        if name not in by_name:
            raise ValueError(f"no host is named {name}; {suggest(name, by_name)}")
    return [by_name[name] for name in names]


def place_nodes(hosts: Sequence[Host], roles: Mapping[str, Role]) -> dict[str, Host]:
    """The host of each node. The nodes of a role are distributed in turn over the hosts that may
    run it, and over racks. Raises ValueError for a role without a host."""
    check_roles(hosts, roles.values())
    racks: dict[str, list[Host]] = {}
    for host in hosts:
        racks.setdefault(host.rack, []).append(host)
    in_turn = [host for layer in zip_longest(*racks.values()) for host in layer if host is not None]
    placed: dict[str, Host] = {}
    counts = dict.fromkeys(ROLES, 0)
    for node, role in roles.items():
        able = [host for host in in_turn if role in host.runs]
        placed[node] = able[counts[role] % len(able)]
        counts[role] += 1
    return placed
