"""Removes what a lab left on an engine: `python sweep.py URL LABEL=VALUE`, run by the reaper.

It imports nothing of ours, and ends by itself: what cannot be removed is tried for DEADLINE_S.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import docker
import requests

DEADLINE_S = 20.0
POLL_S = 0.2


def sweep(url: str, label: str) -> None:
    """Remove all containers with the label, then volumes and networks; a new one is seen too."""
    client = docker.DockerClient(base_url=url, timeout=DEADLINE_S, version="auto")
    wanted = {"label": label}
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        containers = client.containers.list(all=True, filters=wanted, ignore_removed=True)
        left = [*containers, *client.networks.list(filters=wanted)]
        left += client.volumes.list(filters=wanted)
        if not left:
            return
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(_remove, containers))
        for one in left[len(containers) :]:
            _remove(one)
        time.sleep(POLL_S)


def _remove(one: Any) -> None:
    """A failure is tried again: something of the lab may still be dying, or being born."""
    try:
        one.remove(force=True, v=True) if hasattr(one, "kill") else one.remove()
    except (docker.errors.APIError, requests.RequestException):
        return


if __name__ == "__main__":
    sweep(sys.argv[1], sys.argv[2])
