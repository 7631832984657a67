"""A static member that rejoins within its session timeout causes no rebalance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.availability.test_no_delivery import (
    LED_NS,
    OVER_NS,
    PLACE,
    SESSION,
    fault,
    judged,
    polled,
    waiting,
)
from urteil.harness.verify.synthetic import END_NS, S

DIED_NS = LED_NS + 20 * S
STATIC = {"group": "late", "instance": "i9"}


def _back(after_s: float, generation: int, **new: Any) -> Tables:
    """One static member of a group of two is killed in generation 1. Its next session has its first
    assignment after these seconds, in this generation."""
    tables = waiting(end_ns=OVER_NS)
    member = next(row for row in tables["clients"] if row["client"] == SESSION["client"])
    member |= STATIC | {"end_ns": None}
    back_ns = DIED_NS + int(after_s * S)
    mate = member | {"client": "g8", "instance": "i8", "end_ns": OVER_NS}
    begun = {"session": 2, "begin_ns": back_ns - S, "end_ns": OVER_NS}
    tables["clients"] += [mate, member | {"client": "g9.2"} | begun | new]
    tables["polls"] += [polled(END_NS + n * S) | {"client": "g8"} for n in range(2, 80)]
    own = SESSION | PLACE | {"group": "late", "event": "assigned", "member_id": "g9"}
    tables["assignments"] += [
        own | {"at_ns": LED_NS, "generation": 1},
        own | {"client": "g9.2", "session": 2, "at_ns": back_ns, "generation": generation},
    ]
    fields = {"invoke_ns": DIED_NS - 1, "complete_ns": DIED_NS, "outcome": "ok"}
    kill = {"act": "kill client", "subject": SESSION["client"], "before": None, "after": "{}"}
    tables["admin_ops"] = [{"run": "r"} | fields | kill]
    tables["faults"].append(fault("kill_client", "g9", DIED_NS, DIED_NS + 2 * S))
    return tables


def _rebalanced(run_dir: Path, tables: Tables) -> list[str]:
    result = judged(run_dir, tables, "static_member_rebalanced", session_timeout_ms="15000")
    return [finding.sentence for finding in result.findings if finding.sub_kind == "rebalanced"]


@pytest.mark.parametrize(
    ("after_s", "generation", "expected"),
    [(3, 1, 0), (3, 2, 1), (8, 3, 1), (9.5, 2, 0), (20, 2, 0)],
)
def test_static_member_back_in_time_causes_no_rebalance(
    after_s: float, generation: int, expected: int, tmp_path: Path
) -> None:
    assert len(_rebalanced(tmp_path, _back(after_s, generation))) == expected


def test_sentence_names_the_dead_broker(tmp_path: Path) -> None:
    assert _rebalanced(tmp_path, _back(3, 2)) == [
        "g9, a static member, returned 3.0 s after it was killed, within its session timeout, but "
        "in a later generation (by 1)."
    ]


def test_other_causes_of_a_generation_yield_no_finding(tmp_path: Path) -> None:
    assert not _rebalanced(tmp_path / "another", _back(3, 2, instance="i7"))
    plain = _back(3, 2)
    plain["clients"] = [row | {"instance": None} for row in plain["clients"]]
    assert not _rebalanced(tmp_path / "plain", plain)
    joined = _back(3, 2)
    newcomer = {"client": "g7", "instance": "i7", "begin_ns": DIED_NS + S, "end_ns": OVER_NS}
    joined["clients"].append(joined["clients"][-1] | newcomer)
    assert not _rebalanced(tmp_path / "joined", joined)
    crashed = _back(3, 2)
    crashed["faults"].append(fault("crash", "b1", DIED_NS + S, DIED_NS + 2 * S))
    assert not _rebalanced(tmp_path / "crashed", crashed)
    moving = _back(3, 2)
    moved = moving["assignments"][-1] | {"client": "g8", "session": 1, "at_ns": DIED_NS - S}
    moving["assignments"].append(moved)
    assert not _rebalanced(tmp_path / "moving", moving)


@pytest.mark.parametrize(("begun_s", "expected"), [(-4, 1), (4, 0)])
def test_death_of_a_replaced_member_yields_no_finding(
    begun_s: float, expected: int, tmp_path: Path
) -> None:
    tables = _back(3, 2)
    other = tables["clients"][-2] | {"client": "g7", "instance": "i7", "end_ns": None}
    later = {"client": "g7.2", "session": 2, "begin_ns": DIED_NS + int(begun_s * S)}
    tables["clients"] += [other, other | later]
    (kill,) = tables["admin_ops"]
    before_ns = DIED_NS - 3 * S - S // 2
    tables["admin_ops"].append(
        kill | {"subject": "g7", "invoke_ns": before_ns, "complete_ns": before_ns}
    )
    assert len(_rebalanced(tmp_path, tables)) == expected
