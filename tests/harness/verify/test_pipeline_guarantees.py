"""A pipeline's output is compared with its input: what is missing, and what is there twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.harness.verify.made import Tables
from tests.harness.verify.test_group_guarantees import Judged, healthy, judge
from urteil.harness.scenario import TopicFact
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import END_NS, S, Shape

NAMES = ("unprocessed", "processed_twice", "phantom")
ONE = Shape(records=400, partitions=1)
OUT = {"run": "r", "topic_id": "out", "topic": "urteil-out", "partition": 0}


def copied(values: list[str]) -> Tables:
    """Healthy evidence, and an output topic with copies of these values in this order."""
    tables = healthy()
    who = {"client": "final", "session": 0, "pass": 77}
    tables["passes"].append(
        OUT | who | {"from_offset": 0, "to_offset": len(values), "final": True, "complete": True}
        | {"isolation": "read_committed", "leader": 1, "begin_ns": END_NS, "end_ns": END_NS + S}
    )  # fmt: skip
    for offset, value in enumerate(values):
        tables["reads"].append(
            OUT | who | {"offset": offset, "value_id": f"copy/{value}", "key": "k", "intact": True}
            | {"poll": 9_000_000 + offset, "position_in_poll": 0, "read_ns": END_NS + S}
        )  # fmt: skip
    return tables


def values() -> list[str]:
    return [row["value_id"] for row in healthy()["sends"]]


def judged(run_dir: Path, tables: Tables, **options: str) -> Judged:
    asked, told = synthetic.scenario(ONE), synthetic.facts(ONE)
    load = msgspec.structs.replace(asked.workload, options=options)
    out: dict[str, Any] = {"partitions": 1, "replication_factor": 3, "copies": True}
    told.topics.append(TopicFact(name="urteil-out", topic_id="out", **out))
    asked = msgspec.structs.replace(asked, workload=load)
    return judge(run_dir, tables, asked, told, NAMES)


def test_an_application_that_copied_everything_once(tmp_path: Path) -> None:
    result = judged(tmp_path, copied(values()), promise="exactly-once")
    assert {one.status for one in result.values()} == {Status.HOLDS}


def test_without_an_application_nothing_is_judged(tmp_path: Path) -> None:
    asked, told = synthetic.scenario(ONE), synthetic.facts(ONE)
    result = judge(tmp_path, healthy(), asked, told, NAMES)
    assert result["unprocessed"].status is Status.NOT_JUDGED
    assert result["processed_twice"].status is Status.NOT_JUDGED


def test_a_record_that_was_never_copied(tmp_path: Path) -> None:
    whole = values()
    result = judged(tmp_path, copied(whole[:40] + whole[41:]))
    (finding,) = result["unprocessed"].findings
    assert (result["unprocessed"].status, finding.offset) == (Status.VIOLATED, 40)
    assert f"{whole[40]} at urteil-0@40 was never copied" in finding.sentence


def test_what_is_missing_is_permitted_at_most_once(tmp_path: Path) -> None:
    result = judged(tmp_path, copied(values()[5:]), promise="at-most-once")
    assert result["unprocessed"].status is Status.PERMITTED


def test_a_record_that_was_copied_twice(tmp_path: Path) -> None:
    whole = values()
    for promise, status in (
        ("exactly-once", Status.VIOLATED),
        ("at-most-once", Status.VIOLATED),
        ("at-least-once", Status.PERMITTED),
    ):
        result = judged(tmp_path / promise, copied([*whole, whole[40]]), promise=promise)
        assert result["processed_twice"].status is status
        assert result["unprocessed"].status is Status.HOLDS
    (finding,) = result["processed_twice"].findings
    assert "twice in the output, first at offset 40, last at 400" in finding.sentence


def test_a_copy_of_what_nobody_sent(tmp_path: Path) -> None:
    result = judged(tmp_path, copied([*values(), "r/p0/99999"]))
    (finding,) = result["phantom"].findings
    assert (finding.sub_kind, finding.topic, finding.offset) == ("no invocation", OUT["topic"], 400)
    assert "copy/r/p0/99999" in finding.sentence
