"""A power cut must not lose records that `flush.ms` had flushed to every disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, topic
from urteil.harness.scenario import ClusterSpec
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.harm import Harm, flushed_ns
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.limits import NO_OFFSET
from urteil.harness.verify.synthetic import CRASH_NS, S

FLUSHING = {
    "log.flush.scheduler.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.initial.task.delay.ms": "0",
}
EVERY_MS = 1_000
"""With a flush every second, records are on the disks five seconds after their acknowledgement."""


def _lost(run_dir: Path, brokers: dict[str, str], **config: str) -> tuple[int, int]:
    """The numbers of violations and permitted losses among two lost records. One was acknowledged
    ten seconds before all brokers lost power, the other right before."""
    tables: Tables = healthy()
    logs = {f"b{broker}": {"urteil-0": [100, None]} for broker in (1, 2, 3)}
    tables["faults"][0]["harm"] = json.dumps({"at_ns": CRASH_NS, "brokers": logs})
    for offset, before_ns in ((110, 10 * S), (180, S // 10)):
        at_ns = CRASH_NS - before_ns
        value = {"value_id": f"r/p0/{100_000 + offset}", "op": 100_000 + offset, "client": "p0"}
        when = {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
        tables["sends"].append(tables["sends"][offset] | value | when)
    scenario = synthetic.scenario(ONE, cluster=ClusterSpec(config=brokers))
    facts = synthetic.facts(ONE, topics=topic(**config))
    result = alone("lost_write", run_dir, tables, scenario=scenario, facts=facts)
    return result.violations, result.permitted


@pytest.mark.parametrize(
    ("brokers", "config", "expected"),
    [
        (FLUSHING, {"flush_ms": str(EVERY_MS)}, (1, 1)),
        (FLUSHING | {"log.flush.interval.ms": str(EVERY_MS)}, {}, (1, 1)),
        (FLUSHING, {}, (0, 2)),
        (FLUSHING, {"flush_ms": "30000"}, (0, 2)),
        ({}, {"flush_ms": str(EVERY_MS)}, (0, 2)),
    ],
    ids=["topic", "brokers", "never", "seldom", "by nobody"],
)
def test_flushed_record_must_survive(
    brokers: dict[str, str], config: dict[str, str], expected: tuple[int, int], tmp_path: Path
) -> None:
    assert _lost(tmp_path, brokers, **config) == expected


def _span(begin_ns: int, end_ns: int, *isr: int) -> Span:
    return Span(version=0, begin_ns=begin_ns, end_ns=end_ns, leader=1, leader_epoch=0,
                controller_epoch=1, isr=isr, topic="t", path="", previous=None)  # fmt: skip


def _cut(at_ns: int, *brokers: int) -> list[Harm]:
    return [
        Harm(broker=broker, at_ns=at_ns, until_ns=at_ns + 1, low=9, high=NO_OFFSET)
        for broker in brokers
    ]


@pytest.mark.parametrize(
    ("spans", "hurt", "within_ns", "sure_ns"),
    [
        ([_span(0, 100, 1, 2)], _cut(50, 1, 2), 20, 30),
        ([_span(0, 100, 1, 2)], _cut(50, 1, 2), None, None),
        ([_span(0, 100, 1, 2)], _cut(50, 1), 20, None),
        ([_span(0, 100, 1, 2)], [*_cut(50, 1, 2), *_cut(80, 1, 2)], 20, None),
        ([_span(0, 40, 1), _span(40, 100, 1, 2)], _cut(50, 1, 2), 20, None),
    ],
    ids=["once", "not reported", "one lives", "twice", "one came in"],
)
def test_loss_is_permitted_from_its_moment_on(
    spans: list[Span], hurt: list[Harm], within_ns: int | None, sure_ns: int | None
) -> None:
    assert flushed_ns(spans, hurt, within_ns) == sure_ns
