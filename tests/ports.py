"""Ports for the servers of tests, which nobody takes between the choice and the server's start."""

from __future__ import annotations

import os
import random
import socket
from itertools import cycle

LOWEST, A_PROCESS, PROCESSES = 10_000, 1_200, 8
"""Below those of the lab's clusters, and below what a system gives to whoever asks for any."""


def _own() -> list[int]:
    """Of this process alone, among those that run the tests of one session."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PROCESSES
    first, turn = LOWEST + number * A_PROCESS, random.SystemRandom().randrange(A_PROCESS)
    return [first + (turn + at) % A_PROCESS for at in range(A_PROCESS)]


_ports = cycle(_own())


def free_port() -> int:
    """One of the loopback that nobody has now, and that is not given again for long."""
    while True:
        port = next(_ports)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
