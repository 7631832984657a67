"""Targets: the systems that a run judges."""

from __future__ import annotations

from urteil.chaos.similar_names import suggest
from urteil.harness.dependencies.kafka_releases import LINES, NEWEST, abbreviate, release_line
from urteil.harness.targets.kafka import KafkaTarget
from urteil.harness.targets.kraft import KraftTarget
from urteil.harness.targets.mix import PREFIX, Mix
from urteil.harness.targets.target import BrokerNode, Target
from urteil.harness.targets.urteil import UrteilTarget

__all__ = [
    "TARGETS",
    "BrokerNode",
    "KafkaTarget",
    "KraftTarget",
    "Mix",
    "Target",
    "UrteilTarget",
    "parse_target",
]

TARGETS = {
    "urteil": "the broker of this project",
    "external:FILE.toml": "a cluster that the lab does not start (docs/guide/external.md)",
    "kafka": f"Apache Kafka {NEWEST} with ZooKeeper, from Maven Central",
    "kafka:VERSION": f"another release: {', '.join(v for line in LINES for v in line.versions)}; "
    "from 4.0 on without ZooKeeper (docs/guide/releases.md)",
    "kafka-kraft:VERSION": "Apache Kafka without ZooKeeper, "
    f"{abbreviate(line for line in LINES if line.has_kraft)}; without a version {NEWEST} "
    "(docs/guide/kraft.md)",
    "mix:KIND,KIND,...": "a target a broker: mix:kafka,urteil,urteil (docs/guide/mix.md)",
}


def parse_target(name: str) -> Target | Mix:
    """Parse the name of a target that the lab starts: `urteil`, `kafka`, `kafka:VERSION`,
    `kafka-kraft:VERSION` or `mix:` with a list.

    Raises ValueError, with the known targets, for other names and for unknown releases.
    """
    if name.startswith(PREFIX):
        return Mix(tuple(_kind(kind) for kind in name.removeprefix(PREFIX).split(",")))
    return _kind(name)


def _kind(name: str) -> Target:
    kind, _, version = name.partition(":")
    if kind == "external":
        raise ValueError("the lab does not start an external cluster: only `urteil run` judges it")
    if kind == "kafka" and version and not release_line(version).has_zookeeper:
        return KraftTarget(version=version)
    if kind == "kafka":
        return KafkaTarget(version=version) if version else KafkaTarget()
    if kind == "kafka-kraft":
        return KraftTarget(version=version) if version else KraftTarget()
    if name == "urteil":
        return UrteilTarget()
    raise ValueError(f"unknown target {name!r}; {suggest(kind, TARGETS)}")
