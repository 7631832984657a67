"""The hosts of a night: each run plays on a group of free hosts.

Every host is checked before a run uses it. A host with a problem is left out, and checked again
after RETRY_S, so a host that dies costs only the run in which it died.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from urteil.chaos.observations import LabFailure
from urteil.harness.runtimes.hosts.host_check import HostCheck, check_hosts
from urteil.harness.runtimes.hosts.inventory import ROLES, Host, Role, write_hosts
from urteil.harness.verify.plurals import count_text

RETRY_S = 600.0
Check = Callable[[Sequence[Host]], Sequence[HostCheck]]


class HostPool:
    """Groups of `size` hosts. Thread-safe. `folder` receives an inventory for each group. `report`
    is called with the problem of each host that is left out."""

    def __init__(
        self,
        hosts: Sequence[Host],
        size: int,
        folder: Path,
        *,
        check: Check = check_hosts,
        report: Callable[[str], None] = lambda _problem: None,
    ) -> None:
        """Raises ValueError if the hosts cannot form a group of this size."""
        self._roles = [role for role in ROLES if any(role in host.runs for host in hosts)]
        if _group_of(hosts, size, self._roles) is None:
            raise ValueError(
                f"{count_text(len(hosts), 'host')} cannot form a group of {size} that runs "
                "all kinds of nodes: take fewer with --hosts-per-run, or name more hosts"
            )
        self._size = size
        self._folder = folder
        self._check = check
        self._report = report
        self._free = list(hosts)
        self._busy: list[Host] = []
        self._left_out: dict[Host, tuple[float, str]] = {}
        self._changed = threading.Condition()
        self.groups = len(hosts) // size

    @contextmanager
    def group(self) -> Iterator[Path]:
        """The inventory of a group that is free until the block ends; waits for one.

        Raises LabFailure if too few hosts can be used.
        """
        hosts = self._take()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{'+'.join(host.name for host in hosts)}.toml"
            write_hosts(path, hosts)
            yield path
        finally:
            self._release(hosts)

    def _take(self) -> list[Host]:
        while True:
            hosts = self._reserve()
            checks = self._check(hosts)
            broken = {check.host: check.problems[0] for check in checks if check.problems}
            if not broken:
                return hosts
            self._release(hosts, broken)

    def _reserve(self) -> list[Host]:
        """Reserve free hosts for a group, once there are enough. The caller checks them."""
        with self._changed:
            while True:
                self._readmit()
                if (hosts := _group_of(self._free, self._size, self._roles)) is not None:
                    self._free = [host for host in self._free if host not in hosts]
                    self._busy += hosts
                    return hosts
                if _group_of([*self._free, *self._busy], self._size, self._roles) is None:
                    problem = next((text for _, text in self._left_out.values()), "")
                    raise LabFailure(f"too few hosts are left for a run: {problem}")
                self._changed.wait()

    def _readmit(self) -> None:
        """Consider hosts again that have been left out for RETRY_S."""
        now = time.monotonic()
        for host in [host for host, (at, _) in self._left_out.items() if now - at > RETRY_S]:
            del self._left_out[host]
            self._free.append(host)

    def _release(self, hosts: Sequence[Host], broken: dict[Host, str] | None = None) -> None:
        broken = broken or {}
        with self._changed:
            self._busy = [host for host in self._busy if host not in hosts]
            self._free += [host for host in hosts if host not in broken]
            self._left_out |= {host: (time.monotonic(), text) for host, text in broken.items()}
            self._changed.notify_all()
        for problem in broken.values():
            self._report(problem)


def _group_of(hosts: Sequence[Host], size: int, roles: Sequence[Role]) -> list[Host] | None:
    """A group that runs these roles, of hosts in their order where possible; None if there is
    none."""
    needed = [next((host for host in hosts if role in host.runs), None) for role in roles]
    if any(host is None for host in needed):
        return None
    first = list(dict.fromkeys(host for host in needed if host is not None))
    group = [*first, *(host for host in hosts if host not in first)][:size]
    return group if len(group) == size >= len(first) else None
