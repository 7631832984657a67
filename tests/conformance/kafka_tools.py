"""Apache Kafka's tools: those of 3.9.1, and of 2.8.0, the last that write into ZooKeeper."""

from __future__ import annotations

import subprocess

from urteil.harness.dependencies.kafka import kafka_tool

OLD = "2.8.0"


def old_tool(main_class: str, zookeeper: str, *args: str) -> str:
    """What `main_class --zookeeper ... ARGS` prints; its failure fails the test."""
    return _run(kafka_tool(main_class, ["--zookeeper", zookeeper, *args], version=OLD))


def tool(main_class: str, bootstrap: str, *args: str) -> str:
    """The same of the tools of 3.9.1, which ask brokers."""
    return _run(kafka_tool(main_class, ["--bootstrap-server", bootstrap, *args]))


def run_tool(main_class: str, args: list[str], *, version: str) -> str:
    """The same of any release, with whatever arguments."""
    return _run(kafka_tool(main_class, args, version=version))


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}\n{done.stderr}"
    return done.stdout
