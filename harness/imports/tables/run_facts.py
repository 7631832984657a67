"""The facts of an imported history: its topics, times, and gaps in its reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from urteil.harness.evidence.schema import TABLES
from urteil.harness.imports.tables.missing_columns import Settings
from urteil.harness.scenario import (
    IMPORTED,
    ClusterSpec,
    Phase,
    RunFacts,
    Scenario,
    TopicFact,
    WorkloadSpec,
    save,
)
from urteil.harness.verify.derived.partitions import ENDS, LOG

DEFAULTS = {
    "min.insync.replicas": "1",
    "zookeeper.session.timeout.ms": "18000",
    "replica.lag.time.max.ms": "30000",
}
"""Apache Kafka's, where the lab gives its own brokers others."""
Tables = dict[str, pa.Table]
Configs = dict[str, dict[str, str]]


def describe(
    run_dir: Path,
    run: str,
    have: Tables,
    configs: Configs,
    settings: Settings,
    command: str,
    problems: list[str],
    *,
    made: bool,
) -> None:
    """Write `scenario.json` and `run.json` of a history with the tables `have`.

    `configs` are settings of its topics, `settings` those of its clients. `made`: its passes were
    derived from reads, without ends that they had to reach. `problems` are reasons why parts of it
    cannot be judged.
    """
    begin_ns, end_ns = _span(have)
    facts = RunFacts(
        run=run, seed=0, scenario="elsewhere", target="elsewhere", runtime=IMPORTED, boot_id="",
        command=command, topics=list(_topics(have, configs, made=made)),
        phases=[Phase(name="before", begin_ns=begin_ns, end_ns=end_ns)],
        problems=problems,
        withheld=[
            name
            for name, table in TABLES.items()
            if table.in_every_run and (name not in have or not len(have[name]))
        ],
    )  # fmt: skip
    load = WorkloadSpec(
        kind="elsewhere", acks=settings["acks"], idempotent=settings["idempotent"],
        isolation=settings["isolation"], client="elsewhere", rate_records_per_s=0,
    )  # fmt: skip
    scenario = Scenario(
        name="elsewhere", about="a history that somebody else recorded", workload=load,
        cluster=ClusterSpec(brokers=3 if "logs" in have else 1, config=DEFAULTS),
        guarantees=(_judged_guarantee(facts.topics, have),), minimum_acks=1, target="elsewhere",
        runtime=IMPORTED,
    )  # fmt: skip
    save(run_dir / "scenario.json", scenario)
    save(run_dir / "run.json", facts)


def _judged_guarantee(topics: list[TopicFact], have: Tables) -> str:
    """The guarantee that must be judged."""
    if not all("compact" in topic.config.get("cleanup.policy", "") for topic in topics):
        return "lost_write"
    return "latest_value_lost" if "logs" in have else "stale_value_visible"


def _span(have: Tables) -> tuple[int, int]:
    """From the first time of a send or read to the last one of anything, 0 without any."""
    columns = (
        rows[name] for rows in have.values() for name in rows.column_names
        if name.endswith("_ns") and pa.types.is_integer(rows[name].type)
    )  # fmt: skip
    ends = [pc.min_max(column).as_py() for column in columns]
    known = [bounds for bounds in ends if bounds["min"] is not None]
    if not known:
        return 0, 0
    return min(bounds["min"] for bounds in known), max(bounds["max"] for bounds in known)


def _topics(have: Tables, configs: Configs, *, made: bool) -> Iterator[TopicFact]:
    """The topics by name.

    Without logs, records that were read count as stored, except in topics whose transactions were
    read before their end.
    """
    most: dict[tuple[str, str], int] = defaultdict(int)
    copies: dict[str, int] = defaultdict(lambda: 1)
    for rows in (have[name] for name in ("sends", "reads", "passes", "logs") if name in have):
        by_topic = rows.group_by(["topic", "topic_id"]).aggregate([("partition", "max")])
        for row in by_topic.to_pylist():
            if row["topic_id"] is not None:
                key = row["topic"] or row["topic_id"], row["topic_id"]
                most[key] = max(most[key], (row["partition_max"] or 0) + 1)
    if "logs" in have:
        logs = have["logs"].group_by(["topic_id", "partition"]).aggregate([("broker", "count")])
        for row in logs.to_pylist():
            copies[row["topic_id"]] = max(copies[row["topic_id"]], row["broker_count"])
    mixed = _mixed_topics(have)
    for (name, topic_id), partitions in sorted(most.items()):
        marks = {} if "logs" in have or topic_id in mixed else {LOG: "reads"}
        marks |= {ENDS: "unknown"} if made else {}
        yield TopicFact(name=name, topic_id=topic_id, partitions=partitions,
                        replication_factor=copies[topic_id],
                        config=marks | configs.get(name, {}))  # fmt: skip


def _mixed_topics(have: Tables) -> set[str]:
    """Topics with transactions, if any reader reads uncommitted records."""
    sends, passes = have["sends"], have.get("passes")
    if passes is None or "read_uncommitted" not in pc.unique(passes["isolation"]).to_pylist():
        return set()
    return set(pc.unique(sends.filter(pc.is_valid(sends["txn"]))["topic_id"]).to_pylist())
