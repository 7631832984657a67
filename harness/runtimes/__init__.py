"""Where nodes run: as processes of this machine, or in containers."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.runtimes.base import Runtime

RUNTIMES = ("process", "docker")


def open_runtime(
    name: str, run_dir: Path, *, target: str, brokers: int, zookeepers: int
) -> Runtime:
    """A runtime with room for a cluster; what it holds ends with its `close`.

    ValueError for an unknown name; MissingPart where what it needs cannot be had.
    """
    if name == "process":
        from urteil.harness.runtimes.process import ProcessRuntime

        return ProcessRuntime(run_dir, brokers=brokers, zookeepers=zookeepers)
    if name == "docker":
        from urteil.harness.runtimes.docker import DockerRuntime

        return DockerRuntime(run_dir, target=target, brokers=brokers, zookeepers=zookeepers)
    raise ValueError(f"unknown runtime {name!r}: {', '.join(RUNTIMES)}")
