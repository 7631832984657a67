"""Readers that receive records late are found, if nothing explains the delay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import alone, copy_of, healthy
from urteil.harness.host_load import METRIC
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage.added_topics import BOUNDED
from urteil.harness.verify.damage.availability import wait_fetches_out
from urteil.harness.verify.damage.compaction_and_retention import clone
from urteil.harness.verify.damage.copy import Untried
from urteil.harness.verify.derived.prompt_intervals import MIN_POLLS
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, TOPIC, TOPIC_ID, S

SHAPE = synthetic.Shape(records=80, partitions=1)
MS = 1_000_000
POLLS = 60
QUIET_NS = END_NS + 20 * S
SESSION = {"client": "c9", "session": 0}
PLACE = {"topic_id": TOPIC_ID, "topic": TOPIC, "partition": 0}


def _judged(
    run_dir: Path,
    *,
    late: int = 6,
    age_ms: int = 190,
    busy: bool = False,
    every_ms: int = 500,
    reader: Any = None,
    send: Any = None,
    **fault: Any,
) -> GuaranteeResult:
    """A run with a reader that polls 60 records one by one, `late` of them at an age of
    `age_ms`; a `busy` host has 9 runnable tasks per processor throughout."""
    tables = healthy(SHAPE)
    sends = sorted(tables["sends"], key=lambda row: int(row["offset"]))
    lives = {"kind": "consumer", "isolation": "read_uncommitted", "group": None}
    life = {"begin_ns": QUIET_NS - 10 * S, "end_ns": QUIET_NS + 60 * S}
    tables["clients"].append(tables["clients"][0] | SESSION | lives | life | (reader or {}))
    for number, row in enumerate(sends):
        at_ns = QUIET_NS + number * every_ms * MS
        row |= {"invoke_ns": at_ns - MS, "complete_ns": at_ns} | (send or {})
        if number > POLLS:
            continue
        age_ns = (age_ms if 0 < number <= late else 5) * MS
        moved = {"position_before": row["offset"], "position_after": row["offset"] + 1}
        times = {"invoke_ns": at_ns, "complete_ns": at_ns + age_ns, "poll": number}
        tables["polls"].append(
            {"run": "r", "outcome": "ok", "error": None, "event": None}
            | SESSION | PLACE | times | moved
        )  # fmt: skip
    tables["faults"][0].update(fault)
    tables["samples"] += [
        {"run": "r", "at_ns": QUIET_NS + number * S, "source": "lab", "metric": METRIC}
        | {"labels": "{}", "value": 9.0 if busy else 7.0}
        for number in range(60)
    ]
    phases = [
        Phase(name="during", begin_ns=BEGIN_NS, end_ns=QUIET_NS + 60 * S),
        Phase(name="final", begin_ns=QUIET_NS + 60 * S, end_ns=QUIET_NS + 61 * S),
    ]
    facts = synthetic.facts(SHAPE, phases=phases)
    scenario = synthetic.scenario(SHAPE)
    return alone("slow_fetch", run_dir, tables, scenario=scenario, facts=facts, shape=SHAPE)


def test_reader_whose_fetches_wait_out_is_a_violation(tmp_path: Path) -> None:
    result = _judged(tmp_path)
    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.sub_kind == "waited out"
    assert finding.sentence.startswith(
        "6 of 60 polls of c9 returned records that had been acknowledged for 100 ms and more "
        "(up to 190 ms)"
    )


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"late": 3}, Status.HOLDS),
        ({"age_ms": 95}, Status.HOLDS),
        ({"busy": True}, Status.NOT_JUDGED),
        ({"late": 60, "every_ms": 100}, Status.NOT_JUDGED),
        ({"reader": {"kind": "group", "group": "g"}}, Status.NOT_JUDGED),
        ({"reader": {"isolation": "read_committed"}}, Status.NOT_JUDGED),
        ({"send": {"acks": 1}}, Status.NOT_JUDGED),
        ({"begin_ns": QUIET_NS, "end_ns": QUIET_NS + 50 * S, "healed_ns": QUIET_NS + 50 * S},
         Status.NOT_JUDGED),
    ],
    ids=["few", "sooner", "busy machine", "behind", "member", "of committed records",
         "before followers", "fault"],
)  # fmt: skip
def test_late_polls_that_are_explained_yield_no_finding(
    more: dict[str, Any], status: Status, tmp_path: Path
) -> None:
    result = _judged(tmp_path, **more)
    assert result.status is status, result
    assert not result.findings


def test_damage_to_fetches_requires_enough_records() -> None:
    copy = copy_of(healthy())
    few = clone(copy, BOUNDED)[:MIN_POLLS]
    rest = [row for row in copy.rows("sends") if row["topic_id"] != BOUNDED.topic_id]
    copy.rows("sends")[:] = rest + few
    with pytest.raises(Untried, match="too few records"):
        wait_fetches_out(copy)
