"""Administrative requests must finish, unless something prevents them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, TOPIC, TOPIC_ID, S

ACT_NS = BEGIN_NS + S
MARKED = {"path": "/admin/delete_topics/old", "topic": "old", "topic_id": "id of old"}
NODE = {"path": f"/brokers/topics/{TOPIC}", "topic": TOPIC, "topic_id": TOPIC_ID}
BROKER = {"path": "/brokers/ids/1"}
ELECTED = [{"path": "/controller", "at_ns": END_NS + n * S} for n in (15, 40)]
DELETED: dict[str, Any] = {"version": -1, "at_ns": ACT_NS + S}


def _judged(
    run_dir: Path,
    *nodes: dict[str, Any],
    ops: tuple[dict[str, Any], ...] = (),
    guarantee: str = "unfinished_administration",
    **fault: Any,
) -> GuaranteeResult:
    """A run with these last versions of znodes and with changes to its fault."""
    tables = healthy()
    blank = dict.fromkeys(tables["states"][0]) | {"at_ns": ACT_NS, "version": 0}
    for zxid, node in enumerate(nodes, start=1):
        tables["states"].append(blank | {"zxid": zxid} | node)
    tables["admin_ops"] = list(ops)
    tables["faults"][0].update(fault)
    scenario = synthetic.scenario(ONE, recovery_deadline_s=5.0)
    return alone(guarantee, run_dir, tables, scenario=scenario)


def _reassign(*nodes: str | int, **more: Any) -> dict[str, Any]:
    fields = {
        "invoke_ns": ACT_NS,
        "complete_ns": ACT_NS,
        "outcome": "ok",
        "act": "reassign",
    }
    return fields | {"subject": TOPIC, "before": "{}", "after": json.dumps({"0": nodes})} | more


def _on(*brokers: int) -> dict[str, Any]:
    return NODE | {"replicas": json.dumps({"0": brokers})}


def test_topic_marked_for_deletion_must_disappear(tmp_path: Path) -> None:
    result = _judged(tmp_path, BROKER, MARKED)
    assert [finding.sub_kind for finding in result.findings] == ["not deleted"]
    assert "requested that old be deleted, but it still exists" in result.findings[0].sentence


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [
        ((BROKER, MARKED, MARKED | DELETED), {}),
        ((BROKER, BROKER | DELETED, MARKED), {}),  # an absent broker may have a replica
        ((MARKED,), {}),  # no source lists the brokers
        ((BROKER, MARKED, *ELECTED), {}),
        ((BROKER, MARKED), {"healed_ns": None}),
        ((BROKER, MARKED), {"fault": "disk_gone"}),
    ],
    ids=["done", "away", "untold", "new controller", "never healed", "disk"],
)
def test_deletion_may_be_delayed(
    nodes: tuple[dict[str, Any], ...], fault: dict[str, Any], tmp_path: Path
) -> None:
    assert not _judged(tmp_path, *nodes, **fault).violations


def test_later_fault_excuses_nothing(tmp_path: Path) -> None:
    result = _judged(tmp_path, BROKER, MARKED, BROKER | {"version": -1, "at_ns": END_NS + 50 * S})
    assert [finding.sub_kind for finding in result.findings] == ["not deleted"]


@pytest.mark.parametrize(
    ("reported", "expected"), [("no refusal", ["not done"]), ("TimeoutError: late", [])]
)
def test_accepted_act_must_be_completed(reported: str, expected: list[str], tmp_path: Path) -> None:
    after = json.dumps({"failure": f"not done after 30 s; {reported}", "partitions": 5})
    op = _reassign(act="add partitions", outcome="info", complete_ns=ACT_NS + 31 * S, after=after)
    result = _judged(tmp_path, BROKER, ops=(op,), acted=False)
    assert [finding.sub_kind for finding in result.findings] == expected


@pytest.mark.parametrize("requested", [("b2", "b3", "b1"), (2, 3, 1)])
@pytest.mark.parametrize("replicas", [(1, 2, 3), (2, 3, 1, 4)])
def test_requested_reassignment_must_complete(
    replicas: tuple[int, ...], requested: tuple[str | int, ...], tmp_path: Path
) -> None:
    result = _judged(tmp_path, BROKER, _on(*replicas), ops=(_reassign(*requested),))
    (finding,) = result.findings
    assert finding.sub_kind == "not moved"
    assert f"be on [2, 3, 1], but it is on {list(replicas)}" in finding.sentence


@pytest.mark.parametrize(
    "ops",
    [
        (_reassign("b1", "b2", "b3"),),
        (_reassign("b3", "b2", "b1"), _reassign("b1", "b2", "b3", invoke_ns=ACT_NS + S)),
        (_reassign("b3", "b2", "b1"), _reassign("b1", "b2", "b3", outcome="info")),
        (_reassign("b3", "b2", "b1", outcome="fail"),),
        (_reassign("b3", "b2", "b1", complete_ns=END_NS - 4 * S),),
        (_reassign("b3", "b2", "b1", after='{"0": "3,2,1"}'),),
        (_reassign("b3", "b2", "b1", after="none"),),
    ],
    ids=["done", "another target", "not known", "refused", "late", "other words", "no object"],
)
def test_replicas_may_stay_without_a_pending_reassignment(
    ops: tuple[dict[str, Any], ...], tmp_path: Path
) -> None:
    assert not _judged(tmp_path, BROKER, _on(1, 2, 3), ops=ops).violations


def _cancel(*nodes: int, **more: Any) -> dict[str, Any]:
    return _reassign(*nodes, act="cancel moves", invoke_ns=ACT_NS + S, complete_ns=ACT_NS + S) | (
        more
    )


@pytest.mark.parametrize(
    ("cancel", "expected"),
    [
        (_cancel(1, 2, 3), []),
        (_cancel(3, 2, 1), []),
        (_cancel(1, 2, 4), ["not moved"]),
        (_cancel(1, 2, 4, outcome="info"), []),
        (_cancel(after='{"0": null}'), []),
    ],
    ids=["done", "in another order", "ignored", "not known", "refused"],
)
def test_cancelled_move_is_undone_in_time(
    cancel: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    """The moves were requested before the cancellation, and need not finish."""
    result = _judged(tmp_path, BROKER, _on(1, 2, 3), ops=(_reassign(2, 3, 4), cancel))
    assert [finding.sub_kind for finding in result.findings] == expected
    for finding in result.findings:
        assert (
            "be back on [1, 2, 4], its move cancelled, but it is on [1, 2, 3]" in finding.sentence
        )


def test_completed_task_counts_as_an_opportunity(tmp_path: Path) -> None:
    before = _judged(tmp_path / "before", BROKER, ops=(_reassign(outcome="fail"),))
    after = _judged(tmp_path / "after", BROKER, _on(1, 2, 3), ops=(_reassign("b1", "b2", "b3"),))
    assert after.status is Status.HOLDS
    assert after.opportunities == before.opportunities + 1


def _state(leader: int, at_ns: int) -> dict[str, Any]:
    path = "/brokers/topics/other/partitions/0/state"
    place = {"path": path, "topic": "other", "topic_id": "id of other", "partition": 0}
    return place | {"leader": leader, "leader_epoch": at_ns // S, "isr": "[1, 2]", "at_ns": at_ns}


def _elect(**more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"partitions": [0], "elected": {"0": "b2"}}
    return _reassign(act="elect preferred", subject="other-0", after=json.dumps(fields)) | more


@pytest.mark.parametrize("late_ns", [-S, 0, S])
def test_a_preferred_leader_that_was_elected_led(late_ns: int, tmp_path: Path) -> None:
    states = (
        _state(1, BEGIN_NS - S),
        _state(2, ACT_NS + late_ns),
        _state(1, ACT_NS + 2 * S),
    )
    assert not _judged(
        tmp_path, *states, ops=(_elect(),), guarantee="preferred_leader_ignored"
    ).violations


@pytest.mark.parametrize("later", [(), (_state(2, ACT_NS + 5 * S),)], ids=["never", "long after"])
def test_preferred_leader_that_never_led_is_found(later: tuple[Any, ...], tmp_path: Path) -> None:
    result = _judged(
        tmp_path,
        _state(1, BEGIN_NS - S),
        *later,
        ops=(_elect(),),
        guarantee="preferred_leader_ignored",
    )
    (finding,) = result.findings
    assert finding.sub_kind == "not elected"
    assert "that broker 2 lead other-0" in finding.sentence
    assert "the election was acknowledged, but broker 1 led all the time" in finding.sentence


@pytest.mark.parametrize(
    "op",
    [_elect(outcome="info"), _elect(complete_ns=None), _elect(after='{"partitions": [0]}'),
     _elect(act="elect unclean")],
)  # fmt: skip
def test_election_without_a_reported_leader_yields_no_finding(
    op: dict[str, Any], tmp_path: Path
) -> None:
    assert not _judged(
        tmp_path, _state(1, BEGIN_NS - S), ops=(op,), guarantee="preferred_leader_ignored"
    ).violations
