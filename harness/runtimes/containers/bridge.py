"""A network bridge for one daemon: two daemons on `docker0` would disturb each other.

(A daemon configured without a default bridge even deletes `docker0` of another one.)
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from contextlib import suppress
from pathlib import Path

RANGE = ipaddress.IPv4Network("198.18.0.0/15")
PREFIX = 24
SIOCBRADDBR, SIOCBRDELBR = 0x89A0, 0x89A1
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS = 0x8916, 0x891C, 0x8914
IFF_UP = 1


class NoFreeNetwork(OSError):
    """Every network of 198.18.0.0/15 has a route on this machine."""


def add_bridge(name: str) -> None:
    """A bridge of at most 15 characters, up, with the last free /24 of 198.18.0.0/15. OSError."""
    network = free_network(_routes())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCBRADDBR, name.encode() + b"\0")
        fcntl.ioctl(control, SIOCSIFADDR, _request(name, network[1]))
        fcntl.ioctl(control, SIOCSIFNETMASK, _request(name, network.netmask))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), IFF_UP))


def remove_bridge(name: str) -> None:
    """Remove the bridge, if it exists."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control, suppress(OSError):
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
        fcntl.ioctl(control, SIOCBRDELBR, name.encode() + b"\0")


def free_network(used_networks: list[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """The last /24 without an overlapping route. Engines assign networks from the first on."""
    for network in reversed(list(RANGE.subnets(new_prefix=PREFIX))):
        if not any(network.overlaps(used) for used in used_networks):
            return network
    raise NoFreeNetwork(f"no network of {RANGE} is free here")


def _request(name: str, address: ipaddress.IPv4Address) -> bytes:
    return struct.pack("16sH2x4s8x", name.encode(), socket.AF_INET, address.packed)


def _routes() -> list[ipaddress.IPv4Network]:
    """Networks with a route of their own, without default routes."""
    networks = []
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        words = line.split()
        address, mask = (int(words[index], 16).to_bytes(4, "little") for index in (1, 7))
        network = ipaddress.IPv4Network((address, str(ipaddress.IPv4Address(mask))), strict=False)
        if network.prefixlen:
            networks.append(network)
    return networks
