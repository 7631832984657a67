"""Sends that are acknowledged late are found, if nothing explains the delay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import alone, copy_of, healthy
from urteil.harness.host_load import METRIC
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage.added_topics import BOUNDED
from urteil.harness.verify.damage.availability import acknowledge_some_late
from urteil.harness.verify.damage.compaction_and_retention import clone
from urteil.harness.verify.damage.copy import Untried
from urteil.harness.verify.derived.prompt_intervals import MIN_POLLS, MIN_TICKS
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, S

SHAPE = synthetic.Shape(records=80, partitions=1)
MS = 1_000_000
QUIET_NS = END_NS + 20 * S
SESSION = {"client": "p9", "session": 0}


def _judged(
    run_dir: Path,
    *,
    late: int = 6,
    late_ms: int = 600,
    usual_ms: int = 10,
    every_ms: int = 700,
    behind: bool = False,
    busy: bool = False,
    producer: Any = None,
    send: Any = None,
    **fault: Any,
) -> GuaranteeResult:
    """A run with a producer that sends 80 records, one every `every_ms`, of which `late` are
    acknowledged after `late_ms`. If it is `behind`, all of them were due at the begin."""
    tables = healthy(SHAPE)
    life = {"begin_ns": QUIET_NS - 10 * S, "end_ns": QUIET_NS + 60 * S}
    settings = {"kind": "producer", "transactional_id": None}
    tables["clients"].append(tables["clients"][0] | SESSION | settings | life | (producer or {}))
    for number, row in enumerate(sorted(tables["sends"], key=lambda row: int(row["offset"]))):
        at_ns = QUIET_NS + number * every_ms * MS
        wait_ns = (late_ms if number < late else usual_ms) * MS
        row |= SESSION | {"invoke_ns": at_ns, "complete_ns": at_ns + wait_ns}
        row |= ({"invoke_ns": QUIET_NS} if behind else {}) | (send or {})
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
    return alone(
        "slow_acknowledgement", run_dir, tables, scenario=scenario, facts=facts, shape=SHAPE
    )


def test_producer_with_late_acknowledgements_is_a_violation(tmp_path: Path) -> None:
    result = _judged(tmp_path)
    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.sub_kind == "late"
    assert finding.sentence == (
        "p9 waited for acknowledgements 600 to 600 ms in 6 of 80 moments, and in half of these "
        "10 ms at most. No fault acted, and every replica was in sync."
    )


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"late": 2}, Status.HOLDS),
        ({"late_ms": 490}, Status.HOLDS),
        ({"usual_ms": 80}, Status.HOLDS),
        ({"behind": True, "late": 0, "every_ms": 200}, Status.HOLDS),
        ({"busy": True}, Status.NOT_JUDGED),
        ({"every_ms": 30, "late": 0}, Status.NOT_JUDGED),
        ({"producer": {"transactional_id": "t"}}, Status.NOT_JUDGED),
        ({"send": {"acks": 1}}, Status.NOT_JUDGED),
        ({"begin_ns": QUIET_NS, "end_ns": QUIET_NS + 50 * S, "healed_ns": QUIET_NS + 50 * S},
         Status.NOT_JUDGED),
    ],
    ids=["few", "sooner", "usual", "behind", "busy machine", "few moments", "in transactions",
         "before followers", "fault"],
)  # fmt: skip
def test_late_acknowledgements_that_are_explained_yield_no_finding(
    more: dict[str, Any], status: Status, tmp_path: Path
) -> None:
    result = _judged(tmp_path, **more)
    assert result.status is status, result
    assert not result.findings


def test_damage_to_acknowledgements_requires_enough_records() -> None:
    copy = copy_of(healthy())
    few = clone(copy, BOUNDED)[: MIN_POLLS + MIN_TICKS]
    rest = [row for row in copy.rows("sends") if row["topic_id"] != BOUNDED.topic_id]
    copy.rows("sends")[:] = rest + few
    with pytest.raises(Untried, match="too few records"):
        acknowledge_some_late(copy)
