"""Runtimes: nodes run as processes of this machine, in containers, or on hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urteil.chaos.topology import USUAL, Layout
from urteil.harness.runtimes.runtime import Runtime

RUNTIMES = ("process", "docker", "ssh")


def open_runtime(
    name: str,
    run_dir: Path,
    *,
    images: Sequence[str],
    zookeepers: int,
    controllers: int = 0,
    later: Sequence[str] = (),
    layout: Layout = USUAL,
    hosts: str = "",
    client_hosts: Sequence[str] = (),
) -> Runtime:
    """A runtime with room for a cluster. Everything in it ends with its `close`. `images` are the
    brokers' images, if nodes run from images, and `later` the images that may replace them. `hosts`
    is the inventory of the runtime ssh, `client_hosts` are those of its hosts that run the lab's
    clients. Raises ValueError for an unknown name and a bad inventory, LabFailure for a host that
    cannot be used, and MissingDependency if a requirement is missing."""
    if name == "process":
        from urteil.harness.runtimes.process import ProcessRuntime

        return ProcessRuntime(
            run_dir,
            brokers=len(images),
            zookeepers=zookeepers,
            controllers=controllers,
            layout=layout,
        )
    if name == "docker":
        from urteil.harness.runtimes.docker import DockerRuntime

        return DockerRuntime(
            run_dir,
            images=images,
            zookeepers=zookeepers,
            controllers=controllers,
            later=later,
            layout=layout,
        )
    if name == "ssh":
        from urteil.harness.runtimes.ssh import SshRuntime

        if layout != USUAL:
            raise ValueError("hosts have no listeners for users: leave out --runtime ssh")
        return SshRuntime(
            run_dir,
            inventory=Path(hosts),
            brokers=len(images),
            zookeepers=zookeepers,
            controllers=controllers,
            client_hosts=client_hosts,
        )
    raise ValueError(f"unknown runtime {name!r}: {', '.join(RUNTIMES)}")
