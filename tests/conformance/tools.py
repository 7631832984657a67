"""Apache Kafka's own tools: those of 3.9.1, which ask brokers, and those of 2.8.0, the last that
write to ZooKeeper themselves. A JVM starts in 1.5 s: few calls, and together where they may be."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.conformance.side import Side
from urteil.harness.parts import kafka_tool

BROKER_TOOLS, ZOOKEEPER_TOOLS = "3.9.1", "2.8.0"
TIMEOUT_S = 60

Command = tuple[str, Sequence[str]]
"""A main class and its arguments, without where the cluster is."""


def ask_brokers(side: Side, main_class: str, *args: str) -> str:
    """What a tool of 3.9.1 prints, with `--bootstrap-server`; it must succeed."""
    return _run(BROKER_TOOLS, main_class, ["--bootstrap-server", side.bootstrap, *args])


def ask_zookeeper(side: Side, main_class: str, *args: str) -> str:
    """What a tool of 2.8.0 prints, with `--zookeeper`; it must succeed."""
    return _run(ZOOKEEPER_TOOLS, main_class, ["--zookeeper", side.zookeeper, *args])


def ask_brokers_all(calls: Sequence[tuple[Side, str, Sequence[str]]]) -> list[str]:
    """`ask_brokers` several times at once, for calls that do not depend on each other."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda call: ask_brokers(call[0], call[1], *call[2]), calls))


def ask_zookeeper_all(side: Side, calls: Sequence[Command]) -> list[str]:
    """`ask_zookeeper` several times at once."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda call: ask_zookeeper(side, call[0], *call[1]), calls))


def _run(version: str, main_class: str, args: Sequence[str]) -> str:
    done = subprocess.run(
        kafka_tool(main_class, args, version),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{main_class} {args}: {done.stdout}{done.stderr}"
    return done.stdout
