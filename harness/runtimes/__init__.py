"""Runtimes: nodes run as processes of this machine, or in containers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urteil.chaos.topology import USUAL, Layout
from urteil.harness.runtimes.runtime import Runtime

RUNTIMES = ("process", "docker")


def open_runtime(
    name: str,
    run_dir: Path,
    *,
    images: Sequence[str],
    zookeepers: int,
    controllers: int = 0,
    later: Sequence[str] = (),
    layout: Layout = USUAL,
) -> Runtime:
    """A runtime with room for a cluster. Everything in it ends with its `close`.

    `images` are the brokers' images, where nodes run from images, and `later` those that may
    replace them. Raises ValueError for an unknown name, MissingDependency when a requirement is
    missing.
    """
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
            run_dir, images=images, zookeepers=zookeepers, later=later, layout=layout
        )
    raise ValueError(f"unknown runtime {name!r}: {', '.join(RUNTIMES)}")
