"""Tables of nftables on a host, one for each injection. Runs in the agent.

A table belongs to the process that made it (`flags owner`, Linux 5.12): the kernel removes it when
that process ends. So each table has an `nft` process of its own, which reads from a pipe of the
agent and ends with it. However the agent or the lab ends, no rule remains.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator

import msgspec

from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until

PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
WAIT_S = 5.0
ALL = 100
SEEN, LOST = "seen", "lost"
COUNTER = re.compile(rf'counter packets (\d+) .*comment "(\S+) ({SEEN}|{LOST})"')
CHAIN = "chain received { type filter hook input priority raw;"
EVERY_KIND_OF_RULE = (
    f"table ip urteil_check {{ flags owner; {CHAIN} ip protocol tcp numgen random mod 100 < 5 "
    "counter drop; ip protocol tcp counter reject with tcp reset; }; }"
)
"""Rules that a host must accept, for `nft --check`, which changes nothing."""


class PacketRule(msgspec.Struct, frozen=True, array_like=True):
    """Packets of one direction that the host receives: `src` and `dst` are addresses, `port_of` is
    `dport` or `sport`. `percent` of them are dropped, or answered by a reset."""

    direction: str
    src: str
    dst: str
    port_of: str
    ports: tuple[int, ...]
    percent: int
    reject: bool

    def lines(self) -> Iterator[str]:
        """The rules in nft's language. One counts received packets, one the dropped ones."""
        ports = ", ".join(map(str, self.ports))
        packets = f"ip saddr {self.src} ip daddr {self.dst} tcp {self.port_of} {{ {ports} }}"
        share = f" numgen random mod {ALL} < {self.percent}" if self.percent < ALL else ""
        act = "reject with tcp reset" if self.reject else "drop"
        yield f'{packets} counter comment "{self.direction} {SEEN}"'
        yield f'{packets}{share} counter {act} comment "{self.direction} {LOST}"'


class PacketTables:
    """The tables of a run, by owning injection."""

    def __init__(self, token: str) -> None:
        self._prefix = f"urteil_{token[:12]}_"
        self._holders: dict[str, subprocess.Popen[str]] = {}

    def add(self, owner: str, rules: Iterable[PacketRule]) -> None:
        """LabFailure if nft rejects the table."""
        table = self._prefix + owner
        lines = "; ".join(line for rule in rules for line in rule.lines())
        holder = subprocess.Popen(
            [_nft(), "--interactive"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert holder.stdin is not None
        self._holders[owner] = holder
        holder.stdin.write(f"table ip {table} {{ flags owner; {CHAIN} {lines}; }}; }}\n")
        holder.stdin.flush()
        if not until(lambda: _list(table), deadline_s=WAIT_S):
            holder.kill()
            _, errors = holder.communicate()
            del self._holders[owner]
            first = next(iter(errors.strip().splitlines()), "it reports no reason")
            raise LabFailure(f"nft did not add rules: {first}")

    def counts(self, owner: str) -> dict[str, tuple[int, int]]:
        """Direction to received packets and dropped packets."""
        counts: dict[str, dict[str, int]] = {}
        listed = _list(self._prefix + owner) if owner in self._holders else ""
        for packets, direction, what in COUNTER.findall(listed):
            counts.setdefault(direction, {SEEN: 0, LOST: 0})[what] += int(packets)
        return {direction: (total[SEEN], total[LOST]) for direction, total in counts.items()}

    def remove(self, owner: str) -> None:
        """Returns when the kernel has no rule of the owner. Repeatable."""
        if (holder := self._holders.pop(owner, None)) is not None:
            holder.kill()
            holder.communicate()
        if not until(lambda: not _list(self._prefix + owner), deadline_s=WAIT_S):
            raise LabFailure(f"the table {self._prefix + owner} of the packet filter is left")


def _nft() -> str:
    path = shutil.which("nft", path=PLACES)
    if path is None:
        raise LabFailure("nft is missing: install nftables")
    return path


def _list(table: str) -> str:
    """A table as text; empty if it does not exist. In JSON, nft 1.0.6 prints arbitrary memory for
    the flags of a table."""
    done = subprocess.run(
        [_nft(), "list", "table", "ip", table],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    return done.stdout if done.returncode == 0 else ""
