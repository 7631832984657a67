"""An external cluster, described by a TOML file: `--target external:FILE.toml`.

    bootstrap = ["127.0.0.1:19093"]          # where clients connect
    zookeeper = "127.0.0.1:12181"            # the lab reads the cluster's state here; without
                                             # it the cluster runs KRaft, and brokers report it

    [settings]                               # broker settings that differ from the defaults
    "zookeeper.session.timeout.ms" = "3000"

    [nodes.b1]                               # brokers: b and their broker.id; ZooKeepers: zk1 ...;
                                             # controllers of KRaft: q and their node.id
    direct = "127.0.0.1:19193"               # the lab's connection, past all proxies
    state = "..."                            # prints: running|paused|exited [PID [EXIT CODE]]
    start = "..."                            # commands, run without a shell in the file's folder
    stop = "..."
    kill = "..."
    pause = "..."
    resume = "..."
    copy = "... {into}"                      # leaves the node's log directory as {into}/data
    log = "..."                              # prints what the node printed

    [[links]]                                # a directed link through a Toxiproxy
    from = "b1"                              # a node, or client
    to = "b2"
    toxiproxy = "127.0.0.1:18474"            # the API of the server with its proxies
    proxies = ["b1-b2-9092"]
    probe = "127.0.0.1:18602"                # probes the link (default: none, no probes)

All but `bootstrap` are optional. A fault without its command does not act, which
makes the run UNKNOWN; a check without its evidence is not judged. A command that changes a node
requires those that show and undo the change (`NEEDS`), so that every run restores the cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from urteil.chaos.faults import FAULTS
from urteil.harness.scenario import ClusterSpec, Scenario

PREFIX = "external:"
NODE = re.compile(r"(b\d+|zk[1-9]\d*|q\d+)")
ADDRESS = re.compile(r"[^\s:,]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
HIGHEST_PORT = 65_535
COMMANDS = ("state", "start", "stop", "kill", "pause", "resume", "copy", "log")
NEEDS = {
    "start": ("state",),
    "stop": ("state", "start"),
    "kill": ("state", "start"),
    "pause": ("state", "resume"),
    "resume": ("state",),
}
"""Commands that another command requires: to show that it acted, and to undo it."""


LAB_ONLY = {
    "own_clocks": "brokers with clocks of their own",
    "log_dirs": "brokers with several log directories",
    "users": "a listener for users",
    "older": "brokers of an older release",
}
"""Features of a scenario's cluster that an external one may lack."""


class ExternalNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node, and the commands that act on it. An empty command is absent."""

    direct: str
    state: str = ""
    start: str = ""
    stop: str = ""
    kill: str = ""
    pause: str = ""
    resume: str = ""
    copy: str = ""
    log: str = ""


class ExternalLink(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"src": "from", "dst": "to"},
):
    """A directed link, and the proxies that carry it."""

    src: str
    dst: str
    toxiproxy: str
    proxies: tuple[str, ...]
    probe: str


SESSION, KRAFT_SESSION = "zookeeper.session.timeout.ms", "broker.session.timeout.ms"
SETTINGS = {SESSION: "18000", KRAFT_SESSION: "9000", "replica.lag.time.max.ms": "30000"}
"""Apache Kafka's defaults of broker settings that checks depend on."""


class ExternalFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file."""

    bootstrap: tuple[str, ...]
    zookeeper: str = ""
    settings: dict[str, str] = {}
    nodes: dict[str, ExternalNode] = {}
    links: tuple[ExternalLink, ...] = ()


def load_external(path: Path) -> ExternalFile:
    """Read and check the file. Raises ValueError with the file, the error and the remedy."""
    try:
        file = msgspec.toml.decode(path.read_bytes(), type=ExternalFile)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}; docs/guide/external.md has an example") from None
    for problem in _problems(file):
        raise ValueError(f"{path}: {problem}")
    return file


def fit_scenario(scenario: Scenario, file: ExternalFile) -> Scenario:
    """The scenario with the cluster's settings, for its judgement.

    Raises ValueError for a scenario with broker settings of its own, or with features that only a
    cluster of the lab has: its containers, clocks of brokers, several log directories, a listener
    for users.
    """
    settings = SETTINGS | file.settings
    session = settings.pop(KRAFT_SESSION)
    if not file.zookeeper:
        settings[SESSION] = session  # checks have one name for both
    other = {k: v for k, v in scenario.cluster.config.items() if settings.get(k) != v}
    if other:
        names = ", ".join(f"{name}={value}" for name, value in other.items())
        raise ValueError(f"{scenario.name} sets {names}, which only a cluster of the lab takes")
    for fault in scenario.faults:
        kind = FAULTS[fault.fault]
        selector = fault.target if file.zookeeper else ""
        why = kind.unsupported_reason(runtime="", target=PREFIX, selector=selector)
        if not why and not file.zookeeper and kind.acts_on_zookeeper(fault.target, fault.options):
            why = f"the fault {kind.name} acts on ZooKeeper, and the file names no zookeeper"
        if why:
            raise ValueError(why)
    if scenario.second is not None:
        raise ValueError(f"{scenario.name} has two clusters, which only the lab starts together")
    for name, feature in LAB_ONLY.items():
        if getattr(scenario.cluster, name) != getattr(ClusterSpec(), name):
            raise ValueError(
                f"{scenario.name} needs {feature}, which only a cluster of the lab has"
            )
    cluster = msgspec.structs.replace(scenario.cluster, config=settings)
    return msgspec.structs.replace(scenario, cluster=cluster)


def _problems(file: ExternalFile) -> list[str]:
    addresses = {f"bootstrap {address}": address for address in file.bootstrap}
    servers = file.zookeeper.split(",") if file.zookeeper else ()
    addresses |= {f"zookeeper {address}": address for address in servers}
    addresses |= {f"nodes.{name}.direct": node.direct for name, node in file.nodes.items()}
    for link in file.links:
        addresses[f"the toxiproxy of {link.src}->{link.dst}"] = link.toxiproxy
        addresses[f"the probe of {link.src}->{link.dst}"] = link.probe
    problems = [] if file.bootstrap else ["bootstrap names no broker"]
    problems += [
        f"{field}: {address!r} is not host:port" for field, address in addresses.items()
        if not ADDRESS.fullmatch(address) or int(address.rpartition(":")[2]) > HIGHEST_PORT
    ]  # fmt: skip
    problems += [
        f"nodes.{name}: a broker is named b and its broker.id, a ZooKeeper zk1, zk2, ..., a "
        "controller of KRaft q and its node.id"
        for name in file.nodes
        if not NODE.fullmatch(name)
    ]
    plane = "a zookeeper" if file.zookeeper else "no zookeeper"
    problems += [
        f"nodes.{name} belongs to the other kind of cluster: the file names {plane}"
        for name in file.nodes
        if name[0] == ("q" if file.zookeeper else "z")
    ]
    return [*problems, *_link_problems(file), *_command_problems(file)]


def _link_problems(file: ExternalFile) -> Iterator[str]:
    nodes = {*file.nodes, "client"}
    pairs: set[tuple[str, str]] = set()
    servers: dict[str, str] = {}
    for link in file.links:
        name = f"{link.src} to {link.dst}"
        if not {link.src, link.dst} <= nodes or link.dst == "client" or link.src == link.dst:
            yield f"a link leads from {name}: nodes are {', '.join(sorted(nodes))}"
        if (link.src, link.dst) in pairs:
            yield f"the link from {name} is there twice: one entry names all its proxies"
        if not link.proxies:
            yield f"the link from {name} names no proxies"
        if servers.setdefault(link.src, link.toxiproxy) != link.toxiproxy:
            yield f"links from {link.src} name several toxiproxies: one has all that begin there"
        pairs.add((link.src, link.dst))


def _command_problems(file: ExternalFile) -> Iterator[str]:
    copied = {name: bool(node.copy) for name, node in file.nodes.items() if name[0] == "b"}
    if len(set(copied.values())) > 1:
        without = min(name for name, has_copy in copied.items() if not has_copy)
        yield f"nodes.{without} has no copy: judged are the logs of all brokers or of none"
    for name, node in file.nodes.items():
        commands = {action: command for action in COMMANDS if (command := getattr(node, action))}
        needs = NEEDS | ({"copy": ("stop",)} if name[0] == "b" else {})
        for action, command in commands.items():
            if why := _command_error(command):
                yield f"nodes.{name}.{action} is not a command: {why}"
            for other in needs.get(action, ()):
                if other not in commands:
                    yield f"nodes.{name} has {action}, which needs {other} too"
        if node.copy and "{into}" not in node.copy:
            yield f"nodes.{name}.copy names no {{into}}, the folder to copy into"


def _command_error(text: str) -> str:
    """The error in a command that cannot be parsed; empty without one."""
    try:
        return "" if shlex.split(text) else "it is empty"
    except ValueError as error:
        return str(error)
