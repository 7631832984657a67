"""Brokers and controllers that exited, or stopped to serve, although no fault stopped them: rows of
the derived table `broker_exits`.

Exits that another program may have caused are not counted: SIGKILL, which the kernel sends when
memory is short, and SIGTERM, after which a node may exit with 0. A starting node needs other nodes,
so its exit is not judged while a fault acts on another node.
"""

from __future__ import annotations

from pathlib import Path

from urteil.harness.evidence.broker_lives import CLOSED, EXIT_CODE, STARTING, STARTS, WHILE
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.validation import cell_checks

_KILLED = (-9, -15, 137, 143, 0)


def exit_rows(run_dir: Path, small: SmallEvidence) -> list[Row]:
    """One row for each process of a node. `kind` is set where it exited by itself, with its
    `exit_code`, and where it runs and refuses connections."""
    rows: list[Row] = []
    for row in evidence.samples(run_dir, (STARTS, EXIT_CODE, CLOSED)):
        if row["value"] is None:
            continue
        node, value = str(row["source"]), int(row["value"])
        if row["metric"] == STARTS:
            blank = {"at_ns": row["at_ns"], "node": node, "kind": None, "exit_code": None}
            rows += [blank] * value
            continue
        if row["metric"] == CLOSED:
            closed = {"at_ns": row["at_ns"], "node": node, "kind": CLOSED, "exit_code": None}
            rows.append(closed)
            continue
        kind = cell_checks.labels(row).get(WHILE)
        if value not in _KILLED and not (kind == STARTING and _has_other_fault(small, node, row)):
            rows.append({"at_ns": row["at_ns"], "node": node, "kind": kind, "exit_code": value})
    return rows


def _has_other_fault(small: SmallEvidence, node: str, row: Row) -> bool:
    """Whether a fault with other targets acted at the time of the exit."""
    return any(
        acting_interval(fault).begin_ns <= row["at_ns"] < acting_interval(fault).end_ns
        for fault in small.faults
        if fault["acted"] and node not in targets_of(fault)
    )
