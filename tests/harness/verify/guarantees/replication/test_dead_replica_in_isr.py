"""A former leader is not in sync once another leader was elected in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, S

LED = healthy()["states"][-1]["leader"]
NEXT, THIRD = (broker for broker in (1, 2, 3) if broker != LED)
LEFT_NS = END_NS + 10 * S
DEPARTED = {"path": f"/brokers/ids/{LED}", "version": -1, "at_ns": LEFT_NS}
BACK = {"path": f"/brokers/ids/{LED}", "version": 0, "at_ns": LEFT_NS}


def _judged(
    run_dir: Path,
    *isrs: tuple[int, ...],
    nodes: tuple[dict[str, Any], ...] = (DEPARTED,),
    epochs: tuple[int, ...] = (1, 1),
    until_ns: int = LEFT_NS + 60 * S,
) -> GuaranteeResult:
    """A run whose leader left after the load's records. These ISRs followed, each this number of
    epochs later."""
    tables = healthy()
    last = tables["states"][-1]
    blank = dict.fromkeys(last)
    for n, node in enumerate(nodes, start=1):
        tables["states"].append(blank | {"zxid": last["zxid"] + n} | node)
    for n, (isr, later) in enumerate(zip(isrs, epochs, strict=False), start=1):
        state = {"leader": NEXT, "leader_epoch": last["leader_epoch"] + later}
        state |= {"isr": json.dumps(isr), "at_ns": LEFT_NS + n * S, "version": last["version"] + n}
        tables["states"].append(last | state | {"zxid": last["zxid"] + 100 + n})
    facts = synthetic.facts(ONE, phases=[Phase(name="during", begin_ns=BEGIN_NS, end_ns=until_ns)])
    scenario = synthetic.scenario(ONE, recovery_deadline_s=90.0)
    return alone("dead_replica_in_isr", run_dir, tables, scenario=scenario, facts=facts)


@pytest.mark.parametrize("isrs", [((1, 2, 3), (NEXT, THIRD)), ((1, 2, 3),)])
def test_departed_broker_leaves_the_isr(isrs: tuple[tuple[int, ...], ...], tmp_path: Path) -> None:
    (finding,) = _judged(tmp_path, *isrs).findings
    assert finding.sub_kind == "kept in sync"
    assert finding.sentence == (
        f"Broker {LED} had left, and broker {NEXT} was elected to lead urteil-0 in epoch "
        f"{healthy()['states'][-1]['leader_epoch'] + 1}, but the ISR was still [1, 2, 3]."
    )


@pytest.mark.parametrize(
    ("isrs", "more"),
    [
        (((NEXT, THIRD),), {}),
        (((1, 2, 3), (NEXT, THIRD)), {"epochs": (1, 2)}),
        (((1, 2, 3),), {"until_ns": LEFT_NS + 3 * S}),
        (((1, 2, 3),), {"nodes": ()}),
        (((1, 2, 3),), {"nodes": (DEPARTED, BACK)}),
    ],
    ids=["taken out", "a moment later", "the end", "nobody left", "back again"],
)
def test_returned_or_lately_departed_broker_may_be_in_the_isr(
    isrs: tuple[tuple[int, ...], ...], more: dict[str, Any], tmp_path: Path
) -> None:
    assert not _judged(tmp_path, *isrs, **more).findings
