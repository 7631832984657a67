"""A cluster that somebody else keeps, described by a TOML file: `--target external:FILE.toml`.

    bootstrap = ["127.0.0.1:19093"]          # where clients connect
    zookeeper = "127.0.0.1:12181"            # asked by the lab for the cluster's state

    [nodes.b1]                               # brokers are b and their broker.id, ZooKeepers zk1 ...
    direct = "127.0.0.1:19193"               # asked past all proxies
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
    probe = "127.0.0.1:18602"                # asked through the link (default: none, no probes)

All but `bootstrap` and `zookeeper` may be left out: what is not there cannot be done (a fault that
needs it did not act, and the run is UNKNOWN) or not be judged.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

PREFIX = "external:"
NODE = re.compile(r"(b\d+|zk[1-9]\d*)")
ADDRESS = re.compile(r"[^\s:,]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
COMMANDS = ("state", "start", "stop", "kill", "pause", "resume", "copy", "log")


class ExternalNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node, and the commands that act on it; an empty one is not there."""

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


class ExternalFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    bootstrap: tuple[str, ...]
    zookeeper: str
    nodes: dict[str, ExternalNode] = {}
    links: tuple[ExternalLink, ...] = ()


def load_external(path: Path) -> ExternalFile:
    """The file, checked; ValueError names the file, what is wrong in it and the mend."""
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=ExternalFile)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}; docs/external.md has an example") from None
    for problem in _problems(found):
        raise ValueError(f"{path}: {problem}")
    return found


def _problems(found: ExternalFile) -> list[str]:
    addresses = {f"bootstrap {one}": one for one in found.bootstrap}
    addresses |= {f"zookeeper {one}": one for one in found.zookeeper.split(",")}
    addresses |= {f"nodes.{name}.direct": node.direct for name, node in found.nodes.items()}
    for link in found.links:
        addresses[f"the toxiproxy of {link.src}->{link.dst}"] = link.toxiproxy
        addresses[f"the probe of {link.src}->{link.dst}"] = link.probe
    problems = [] if found.bootstrap else ["bootstrap names no broker"]
    problems += [
        f"{what}: {one!r} is no host:port" for what, one in addresses.items()
        if not ADDRESS.fullmatch(one)
    ]  # fmt: skip
    problems += [
        f"nodes.{name}: a broker is named b and its broker.id, a ZooKeeper zk1, zk2, ..."
        for name in found.nodes
        if not NODE.fullmatch(name)
    ]
    known = {*found.nodes, "client"}
    problems += [
        f"a link leads from {link.src} to {link.dst}: nodes are {', '.join(sorted(known))}"
        for link in found.links
        if not {link.src, link.dst} <= known or link.dst == "client" or link.src == link.dst
    ]
    return problems
