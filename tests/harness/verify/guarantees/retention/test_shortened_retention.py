"""A temporarily shorter retention deletes the records that are too old for it, and segments roll in
time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, alone, topic
from tests.harness.verify.guarantees.retention.test_kept_too_long import BROKERS, LOOKS, of_segments
from urteil.harness.scenario import ClusterSpec, Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult
from urteil.harness.verify.synthetic import END_NS, TOPIC, S

SET_NS, BACK_NS = END_NS + S, END_NS + 40 * S
SHORT = {"retention.ms": "2000", "segment.ms": "1000"}
BACK = dict.fromkeys(SHORT)


def _act(at_ns: int, after: dict[str, str | None], **more: Any) -> dict[str, Any]:
    fields = {
        "act": "config",
        "subject": TOPIC,
        "outcome": "ok",
        "before": "{}",
        "invoke_ns": at_ns,
    }
    return {"run": "r", "complete_ns": at_ns + S, "after": json.dumps(after)} | fields | more


def _judged(
    run_dir: Path, tables: dict[str, Any], guarantee: str, **config: str
) -> GuaranteeResult:
    scenario = synthetic.scenario(ONE, cluster=ClusterSpec(config=BROKERS | LOOKS))
    phases = [Phase(name="during", begin_ns=0, end_ns=END_NS + 60 * S)]
    facts = synthetic.facts(ONE, topics=topic(**config), phases=phases)
    return alone(guarantee, run_dir, tables, scenario=scenario, facts=facts)


@pytest.mark.parametrize(
    ("acts", "fault", "offsets"),
    [
        ((_act(SET_NS, SHORT), _act(BACK_NS, BACK)), {}, [7]),
        ((_act(SET_NS, SHORT), _act(SET_NS + 6 * S, BACK)), {}, []),
        ((_act(SET_NS, SHORT | {"retention.ms": "86400000"}), _act(BACK_NS, BACK)), {}, []),
        ((_act(SET_NS, {"retention.ms": "2000"}), _act(BACK_NS, BACK)), {}, []),
        ((_act(SET_NS, SHORT, outcome="info"), _act(BACK_NS, BACK)), {}, []),
        ((_act(SET_NS, SHORT, subject="another"), _act(BACK_NS, BACK)), {}, []),
        ((_act(SET_NS, SHORT), _act(BACK_NS, BACK)), {"healed_ns": SET_NS + S}, []),
    ],
    ids=["for long", "for a moment", "a day", "in long segments", "who knows", "another topic",
         "beside a fault"],
)  # fmt: skip
def test_record_too_old_for_a_while_may_be_deleted(
    acts: tuple[dict[str, Any], ...], fault: dict[str, Any], offsets: list[int], tmp_path: Path
) -> None:
    tables = of_segments()
    tables["admin_ops"] = list(acts)
    tables["faults"][0] |= fault
    asked = next(row for row in tables["offset_answers"] if row["query"] == "latest")
    for at_ns, offset in ((SET_NS + 5 * S, 5), (SET_NS + 30 * S, 7), (SET_NS + 31 * S, 400)):
        when = {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
        tables["offset_answers"].append(asked | when | {"query": "earliest", "offset": offset})
    result = _judged(tmp_path, tables, "kept_too_long")
    assert [
        finding.offset for finding in result.findings if finding.sub_kind == "kept on"
    ] == offsets
    expected = "reported that urteil-0 begins at 7, although retention.ms was 2 s for a while"
    assert all(expected in finding.sentence for finding in result.findings)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"segment_ms": "4000"}, [0, 200]),
        ({"segment_ms": "60000"}, []),
        ({"segment_bytes": "100"}, [0, 200]),
        ({"segment_bytes": "1000000"}, []),
        ({"segment_ms": "4000", "cleanup_policy": "compact"}, [200]),
        ({"segment_bytes": "100", "cleanup_policy": "compact"}, []),
        ({}, []),
    ],
)
def test_segment_must_be_closed_in_time(
    config: dict[str, str], expected: list[int], tmp_path: Path
) -> None:
    tables = of_segments()
    for row in tables["replicas"]:  # so long do the records of a segment last
        row["timestamp_ms"] += row["offset"] % 200 * 100
    result = _judged(tmp_path, tables, "segment_not_rolled", **config)
    assert [(finding.sub_kind, finding.offset) for finding in result.findings] == [
        ("not rolled", at) for at in expected
    ]
