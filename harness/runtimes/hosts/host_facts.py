"""The properties of a host, determined before the lab runs anything there, and its missing
requirements."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from urteil.harness.dependencies.java import LOWEST as LOWEST_JAVA
from urteil.harness.host_clocks import MOST_OFFSET_NS
from urteil.harness.runtimes.hosts.connection import HostConnection, HostFailure
from urteil.harness.runtimes.hosts.inventory import Host
from urteil.harness.runtimes.hosts.packet_tables import EVERY_KIND_OF_RULE

LOWEST_PYTHON = (3, 11)
LOWEST_FREE = 1 << 30
SAMPLES = 20
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROBE = """
import json, os, platform, re, shutil, socket, subprocess, sys, time
folder = sys.argv[1]
present = folder
while not os.path.isdir(present):
    present = os.path.dirname(present)
java, version = shutil.which("java") or "", ""
if java:
    said = subprocess.Popen([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
parts = os.path.join(folder, "parts")
path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
nft, filter_problem = shutil.which("nft", path=path), "nft is missing"
if nft:
    check = subprocess.Popen([nft, "--check", sys.argv[2]], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    lines = check.communicate()[0].decode("utf-8", "replace").splitlines()
    filter_problem = "nft reports: " + (lines or ["a failure"])[0] if check.returncode else ""
if java:
    found = re.search('version "([0-9]+)', said.communicate()[0].decode("utf-8", "replace"))
    version = found.group(1) if found else ""
with open("/proc/sys/kernel/random/boot_id") as boot:
    boot_id = boot.read().strip()
print(json.dumps({
    "python": list(sys.version_info[:3]), "machine": platform.machine(), "boot_id": boot_id,
    "host_name": socket.gethostname(), "java": java, "java_version": version,
    "filter_problem": filter_problem, "free_bytes": shutil.disk_usage(present).free,
    "parts": sorted(os.listdir(parts)) if os.path.isdir(parts) else [],
}))
sys.stdout.flush()
for line in iter(sys.stdin.readline, ""):
    print(int(time.time() * 1e9) if not hasattr(time, "time_ns") else time.time_ns())
    sys.stdout.flush()
"""
"""Runs on any Python 3: prints facts, and then the wall clock for each line of its input."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the probe. `java` is a path, `java_version` its major version, or both empty.
    `filter_problem` is the reason for which the host cannot filter packets, or empty."""

    python: tuple[int, int, int]
    machine: str
    boot_id: str
    host_name: str
    java: str
    java_version: str
    free_bytes: int
    filter_problem: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """`offset_ns` is the host's wall clock less the lab's, with an error of at most `bound_ns`."""

    host: Host
    found: Found
    offset_ns: int
    bound_ns: int
    round_trip_ns: int

    @property
    def python(self) -> str:
        return ".".join(map(str, self.found.python))

    @property
    def has_java(self) -> bool:
        return self.found.java_version.isdigit() and int(self.found.java_version) >= LOWEST_JAVA

    @property
    def shares_clock(self) -> bool:
        """Whether its monotonic clock is the lab's."""
        return BOOT_ID.exists() and BOOT_ID.read_text().strip() == self.found.boot_id

    @property
    def packet_filter_problem(self) -> str:
        """The reason for which packet faults cannot act there: a sentence with the remedy, or
        empty."""
        if not self.found.filter_problem:
            return ""
        return (
            f"{self.host} cannot filter packets: {self.found.filter_problem}; install nftables "
            "there (Linux 5.12 or newer), and name root as its `user`"
        )

    def problems(self) -> list[str]:
        """The reasons for which the lab cannot run nodes there: a sentence each, with the
        remedy."""
        return [*self._python_problems(), *self._machine_problems(), *self._clock_problems()]

    def _python_problems(self) -> list[str]:
        lab, version = sys.version_info[:2], self.found.python[:2]
        if version < LOWEST_PYTHON:
            needed = ".".join(map(str, LOWEST_PYTHON))
            return [
                f"{self.host} has Python {self.python}, and {needed} or newer is required: install "
                "it, or name it by `python`"
            ]
        if version != lab:
            name = f"{lab[0]}.{lab[1]}"
            return [
                f"{self.host} has Python {self.python}, and the lab {name}, whose packages it "
                f"cannot load: name a python{name} there by `python`, or start the lab with "
                f"Python {version[0]}.{version[1]}"
            ]
        return []

    def _machine_problems(self) -> list[str]:
        problems = []
        if self.found.machine != platform.machine():
            problems.append(
                f"{self.host} is {self.found.machine}, and the lab {platform.machine()}, whose "
                "packages it cannot load: start the lab on a machine of the same kind"
            )
        if self.found.free_bytes < LOWEST_FREE:
            problems.append(
                f"{self.host} has {self.found.free_bytes >> 20} MB free in {self.host.folder}, and "
                f"{LOWEST_FREE >> 20} MB are required: free some, or name another `folder`"
            )
        return problems

    def _clock_problems(self) -> list[str]:
        if abs(self.offset_ns) + self.bound_ns <= MOST_OFFSET_NS:
            return []
        return [
            f"the clock of {self.host} differs from the lab's by "
            f"{describe_offset(self.offset_ns, self.bound_ns)}, and {MOST_OFFSET_NS / 1e6:.0f} ms "
            "are allowed, since checks compare times: set both by one time server, for example "
            "with chrony"
        ]


def describe_offset(offset_ns: int, bound_ns: int) -> str:
    """As `+1.3 ms (± 0.2 ms)` for a clock that is ahead of the lab's."""
    return f"{offset_ns / 1e6:+.1f} ms (± {bound_ns / 1e6:.1f} ms)"


def find_facts(connection: HostConnection) -> HostFacts:
    """Determine the properties of the host of an open connection. Raises HostFailure without a
    usable Python 3."""
    host = connection.host
    try:
        line, samples = connection.probe(PROBE, [host.folder, EVERY_KIND_OF_RULE], SAMPLES)
        found = msgspec.json.decode(line, type=Found)
    except (HostFailure, msgspec.MsgspecError) as failure:
        needed = ".".join(map(str, LOWEST_PYTHON))
        raise HostFailure(
            f"{host} does not run {host.python}: {failure}; install Python {needed} or newer, or "
            "name it by `python`"
        ) from None
    began, answer, ended = min(samples, key=lambda sample: sample[2] - sample[0])
    return HostFacts(
        host=host,
        found=found,
        offset_ns=answer - (began + ended) // 2,
        bound_ns=(ended - began + 1) // 2,
        round_trip_ns=ended - began,
    )


def require_usable(facts: Sequence[HostFacts]) -> None:
    """Raises HostFailure with the first problem of the hosts."""
    for problem in (problem for host in facts for problem in host.problems()):
        raise HostFailure(problem)
