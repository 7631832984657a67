"""Hosts in network namespaces: a bridge, a network of 198.18.0.0/15, and an sshd in each.

    python -m tests.harness.runtimes.hosts.namespaces FOLDER [COUNT]

makes them, writes `FOLDER/hosts.toml`, and removes them when its standard input ends. They share
one kernel, one clock and one file system, so each host has a folder of its own.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until
from urteil.harness.dependencies.host_programs import nft_binary, sshd_binary
from urteil.harness.runtimes.hosts.agent import SILENCE_S

SSH_PORT = 22
COMMAND_S = 20
ENDED_S = 0.8 * SILENCE_S
"""Before an agent would end for silence."""
SSHD = """
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
SetEnv PATH={path} HOME={home}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """One host: its namespace, its address, and its sshd."""

    name: str
    address: str
    folder: Path
    sshd: subprocess.Popen[bytes]

    def pids(self) -> list[int]:
        return [int(pid) for pid in _run("ip", "netns", "pids", self.name).split()]

    def commands(self) -> list[str]:
        """The command lines of the host's processes, without those of sshd."""
        return [text for pid in self.pids() if (text := _command(pid)) and "sshd" not in text]

    def pids_of(self, program: str) -> list[int]:
        """The processes with these words in their command line, without those of sshd."""
        return [
            pid for pid in self.pids() if program in (text := _command(pid)) and "sshd" not in text
        ]

    def filter_rules(self) -> str:
        """The rules of its packet filter."""
        return _run("ip", "netns", "exec", self.name, nft_binary(), "list", "ruleset")

    def set_link(self, *, up: bool) -> None:
        """Connect the host to the bridge, or disconnect it."""
        _ip("-n", self.name, "link", "set", "eth0", "up" if up else "down")

    def end_connections(self) -> None:
        """End every ssh connection of the host. Its sshd accepts others."""
        for pid in self.pids():
            if "sshd: root" in _command(pid):
                os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The hosts with their inventory."""

    bridge: str
    hosts: tuple[Namespace, ...]
    inventory: Path

    def commands(self) -> list[str]:
        """The command lines of all hosts' processes, without those of sshd."""
        return [command for host in self.hosts for command in host.commands()]

    def await_nothing_left(self) -> None:
        """Wait until no host has a process or a folder of a run."""
        until(lambda: not self.commands(), lambda: f"{self.commands()}", deadline_s=ENDED_S)
        for host in self.hosts:
            assert not host.filter_rules()
            runs = host.folder / "runs"
            until(lambda of=runs: not list(of.iterdir()), f"{runs} is empty", deadline_s=ENDED_S)


@contextmanager
def network_of_hosts(
    folder: Path, count: int = 3, *, path: str = "/usr/local/bin:/usr/bin:/bin"
) -> Iterator[Network]:
    """So many hosts until the block ends. `path` is the PATH of what runs there."""
    folder.mkdir(parents=True, exist_ok=True)
    token = f"{random.SystemRandom().randrange(1 << 24):06x}"
    bridge = f"ur{token}"
    nft_binary()
    with ExitStack() as undo:
        network = _free_network()
        _made(undo, ("link", "add", bridge, "type", "bridge"), ("link", "del", bridge))
        _ip("addr", "add", f"{network}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for key in ("user_key", "host_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
        hosts = tuple(
            _host(undo, f"{bridge}-h{n}", bridge, f"{network}.{n}", folder, path)
            for n in range(1, count + 1)
        )
        yield Network(bridge=bridge, hosts=hosts, inventory=_inventory(folder, hosts))


def _host(
    undo: ExitStack, name: str, bridge: str, address: str, folder: Path, path: str
) -> Namespace:
    """A namespace with a link to the bridge, and an sshd that listens there."""
    _made(undo, ("netns", "add", name), ("netns", "del", name))
    inside, outside = "eth0", f"{bridge}{name.rpartition('h')[2]}"
    _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
    _ip("link", "set", outside, "master", bridge, "up")
    for words in (
        ("addr", "add", f"{address}/24", "dev", inside),
        ("link", "set", inside, "up"),
        ("link", "set", "lo", "up"),
    ):
        _ip("-n", name, *words)
    own = folder / name.rpartition("-")[2]
    own.mkdir()
    config = own / "sshd_config"
    config.write_text(SSHD.format(address=address, folder=folder, path=path, home=own))
    Path("/run/sshd").mkdir(exist_ok=True)
    with (own / "sshd.log").open("wb") as log:
        argv = ["ip", "netns", "exec", name, sshd_binary(), "-D", "-e", "-f", str(config)]
        sshd = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    undo.callback(_end, name, sshd)
    until(lambda: _answers(address))
    return Namespace(name=name, address=address, folder=own / "urteil", sshd=sshd)


def _inventory(folder: Path, hosts: Sequence[Namespace]) -> Path:
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    known = "".join(f"{host.address} {host_key}\n" for host in hosts)
    (folder / "known_hosts").write_text(known)
    tables = (
        f'[hosts.h{n}]\naddress = "{host.address}"\nuser = "root"\nkey = "user_key"\n'
        f'known_hosts = "known_hosts"\nfolder = "{host.folder}"\n'
        for n, host in enumerate(hosts, 1)
    )
    (folder / "hosts.toml").write_text("\n".join(tables))
    return folder / "hosts.toml"


def _command(pid: int) -> str:
    """The command line of a process. Empty for one that has just ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _free_network() -> str:
    """The first three octets of a network of RFC 2544's range that no interface has."""
    interfaces = json.loads(_run("ip", "-j", "addr"))
    used = {info["local"].rpartition(".")[0] for face in interfaces for info in face["addr_info"]}
    ranges = [f"198.{second}.{third}" for second in (18, 19) for third in range(250)]
    return random.SystemRandom().choice([network for network in ranges if network not in used])


def _made(undo: ExitStack, make: Sequence[str], remove: Sequence[str]) -> None:
    _ip(*make)
    undo.callback(_ip, *remove)


def _end(name: str, sshd: subprocess.Popen[bytes]) -> None:
    """End every process of a namespace: one alone would keep it after its name is removed."""
    while pids := _run("ip", "netns", "pids", name).split():
        for pid in map(int, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        sshd.poll()  # a zombie counts as well


def _answers(address: str) -> bool:
    try:
        socket.create_connection((address, SSH_PORT), 1.0).close()
    except OSError:
        return False
    return True


def _ip(*words: str) -> str:
    return _run("ip", *words)


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr.strip()}"
    return done.stdout


def main() -> None:
    folder, *rest = sys.argv[1:]
    with network_of_hosts(Path(folder), int(rest[0]) if rest else 3) as network:
        print(network.inventory, flush=True)
        while os.read(0, 4096):
            pass


if __name__ == "__main__":
    main()
