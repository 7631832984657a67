"""Two rules of the machine's firewall for the lab's own networks, 198.18.0.0/15.

Where bridged frames pass the firewall (br_netfilter) and it drops what is forwarded, as ufw and
other engines have it, containers of one network would not reach each other; and where the machine
forwards, those of two networks would. The daemon's own rules would do more: they close forwarding
for everybody, stay after it, and those of two daemons fight.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

from urteil.harness.runtimes.containers.bridge import RANGE

TIMEOUT_S = 20


def open_networks(name: str) -> None:
    """Accept what stays within a bridge, drop what is routed between two. `name` marks the rules.

    Without iptables or its physdev match nothing is changed: then nothing is known to be in the
    way either.
    """
    bridged, routed = _rules(name)
    with suppress(OSError, subprocess.SubprocessError):
        _iptables("-I", "FORWARD", "1", *bridged)
        _iptables("-I", "FORWARD", "2", *routed)


def close_networks(name: str) -> None:
    """Take the rules of `name` away again; nothing when they are not there."""
    for rule in _rules(name):
        with suppress(OSError, subprocess.SubprocessError):
            _iptables("-D", "FORWARD", *rule)


def _rules(name: str) -> tuple[list[str], list[str]]:
    lab = ["-s", str(RANGE), "-d", str(RANGE), "-m", "comment", "--comment", name]
    return [*lab, "-m", "physdev", "--physdev-is-bridged", "-j", "ACCEPT"], [*lab, "-j", "DROP"]


def _iptables(*arguments: str) -> None:
    argv = ["iptables", "-w", "10", *arguments]
    subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=True)
