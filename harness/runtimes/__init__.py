"""Where nodes run: as processes of this machine, or in containers."""

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
    later: Sequence[str] = (),
    layout: Layout = USUAL,
) -> Runtime:
    """A runtime with room for a cluster; what it holds ends with its `close`.

    `images` are what each broker is made of, where they are made of images, and `later` are those
    that may take their place.

    ValueError for an unknown name; MissingDependency where what it needs cannot be had.
    """
    if name == "process":
        from urteil.harness.runtimes.process import ProcessRuntime

        return ProcessRuntime(run_dir, brokers=len(images), zookeepers=zookeepers, layout=layout)
    if name == "docker":
        from urteil.harness.runtimes.docker import DockerRuntime

        return DockerRuntime(
            run_dir, images=images, zookeepers=zookeepers, later=later, layout=layout
        )
    raise ValueError(f"unknown runtime {name!r}: {', '.join(RUNTIMES)}")
