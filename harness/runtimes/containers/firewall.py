"""Two firewall rules for the lab's own networks, 198.18.0.0/15.

They prevent two failures. Containers of one network cannot reach each other if bridged frames pass
the firewall (br_netfilter) and the firewall drops forwarded frames, as ufw and other container
engines configure it. Containers of two networks can reach each other if the machine forwards.

The container daemon could set rules itself, but these do more: they close forwarding for every
program, outlast the daemon, and conflict with those of another daemon.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

from urteil.harness.runtimes.containers.bridge import RANGE

TIMEOUT_S = 20


def add_rules(name: str) -> None:
    """Accept traffic within a bridge, drop traffic routed between two. `name` marks the rules.
    Changes nothing without iptables or its physdev match: then no rules interfere."""
    bridged, routed = _rules(name)
    with suppress(OSError, subprocess.SubprocessError):
        _iptables("-I", "FORWARD", "1", *bridged)
        _iptables("-I", "FORWARD", "2", *routed)


def remove_rules(name: str) -> None:
    """Remove the rules of `name`, if they exist."""
    for rule in _rules(name):
        with suppress(OSError, subprocess.SubprocessError):
            _iptables("-D", "FORWARD", *rule)


def _rules(name: str) -> tuple[list[str], list[str]]:
    lab = ["-s", str(RANGE), "-d", str(RANGE), "-m", "comment", "--comment", name]
    return [*lab, "-m", "physdev", "--physdev-is-bridged", "-j", "ACCEPT"], [*lab, "-j", "DROP"]


def _iptables(*arguments: str) -> None:
    argv = ["iptables", "-w", "10", *arguments]
    subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=True)
