"""Removes the lab's remains from an engine: `python label_sweep.py URL LABEL=VALUE`.

The reaper runs it as a script. It imports no module of the lab, and gives up after DEADLINE_S.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import docker
import requests

DEADLINE_S = 20.0
POLL_S = 0.2
QUIET_SWEEPS = 2


def sweep(url: str, label: str) -> None:
    """Remove all containers with the label, then volumes and networks, including new ones.

    After an engine failure it tries again.
    """
    deadline = time.monotonic() + DEADLINE_S
    quiet = 0
    while quiet < QUIET_SWEEPS and time.monotonic() < deadline:
        try:
            quiet = 0 if _remove_labelled(url, {"label": label}) else quiet + 1
        except (docker.errors.DockerException, requests.RequestException):
            quiet = 0
        time.sleep(POLL_S)


def _remove_labelled(url: str, filters: dict[str, str]) -> bool:
    """Whether anything had to be removed."""
    client = _client(url)
    try:
        containers = client.containers.list(all=True, filters=filters, ignore_removed=True)
        networks_and_volumes = [
            *client.networks.list(filters=filters, greedy=True),
            *client.volumes.list(filters=filters),
        ]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(_remove, containers))
        for leftover in networks_and_volumes:
            _remove(leftover)
        return bool(containers or networks_and_volumes)
    finally:
        client.close()


def _client(url: str) -> docker.DockerClient:
    """A client with the certificates of DOCKER_CERT_PATH, like the lab's own."""
    return docker.from_env(
        environment={**os.environ, "DOCKER_HOST": url},
        timeout=DEADLINE_S,
        version="auto",
        use_ssh_client=url.startswith("ssh://"),
    )


def _remove(leftover: Any) -> None:
    """Remove one object. Failures are retried: containers may still be starting or ending. Other
    users' containers are disconnected from a network first."""
    try:
        for container in (
            leftover.attrs.get("Containers") or {} if hasattr(leftover, "disconnect") else {}
        ):
            leftover.disconnect(container, force=True)
        leftover.remove(force=True, v=True) if hasattr(leftover, "kill") else leftover.remove()
    except (docker.errors.APIError, requests.RequestException):
        return


if __name__ == "__main__":
    sweep(sys.argv[1], sys.argv[2])
