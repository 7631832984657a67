"""Replicas that leave the ISR without a fault are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, HEALED_NS, S

BROKERS = tuple({"path": f"/brokers/ids/{broker}", "at_ns": BEGIN_NS} for broker in (1, 2, 3))
UNTIL_NS = END_NS + 60 * S


def _judged(
    run_dir: Path,
    isrs: tuple[str, str],
    *,
    nodes: tuple[dict[str, Any], ...] = (),
    ops: tuple[dict[str, Any], ...] = (),
    until_ns: int = UNTIL_NS,
    **fault: Any,
) -> GuaranteeResult:
    """A run whose partition had these ISRs 8 and 18 s after the load."""
    tables = healthy()
    for state, isr in zip(tables["states"][3:], isrs, strict=True):
        state["isr"] = isr
    blank = dict.fromkeys(tables["states"][0]) | {"version": 0}
    for zxid, node in enumerate((*BROKERS, *nodes), start=1):
        tables["states"].append(blank | {"zxid": zxid} | node)
    tables["admin_ops"] = list(ops)
    tables["faults"][0].update(fault)
    scenario = synthetic.scenario(ONE, recovery_deadline_s=30.0)
    facts = synthetic.facts(ONE, phases=[Phase(name="after", begin_ns=BEGIN_NS, end_ns=until_ns)])
    return alone("shrunken_isr", run_dir, tables, scenario=scenario, facts=facts)


def test_follower_in_sync_stays_in_the_isr(tmp_path: Path) -> None:
    result = _judged(tmp_path, ("[2, 3]", "[2, 3]"))
    (finding,) = result.findings
    assert finding.sub_kind == "fell out"
    assert finding.sentence.startswith("All 3 replicas of urteil-0 were in sync, then only 2 were")
    assert finding.sentence.endswith("while no fault acted, for 52 s.")


@pytest.mark.parametrize(
    ("isrs", "more"),
    [
        (("[2, 3, 1]", "[2, 3, 1]"), {}),
        (("[2, 3]", "[2, 3, 1]"), {}),
        (("[2, 3]", "[2, 3]"), {"until_ns": END_NS + 37 * S}),
        (("[2, 3]", "[2, 3]"), {"healed_ns": None}),
        (("[2, 3]", "[2, 3]"), {"fault": "disk_slow"}),
        (("[2, 3]", "[2, 3]"), {"nodes": (BROKERS[0] | {"version": -1, "at_ns": HEALED_NS},)}),
        (
            ("[2, 3]", "[2, 3]"),
            {"nodes": (BROKERS[0] | {"version": 1, "at_ns": END_NS + 20 * S},)},
        ),
        (("[2, 3]", "[2, 3]"), {"ops": ({"act": "reassign", "subject": "urteil"},)}),
    ],
    ids=["whole", "back", "not for long", "never healed", "disk", "away", "restarted", "moved"],
)
def test_isr_shrink_with_a_cause_yields_no_finding(
    isrs: tuple[str, str], more: dict[str, Any], tmp_path: Path
) -> None:
    assert not _judged(tmp_path, isrs, **more).violations
