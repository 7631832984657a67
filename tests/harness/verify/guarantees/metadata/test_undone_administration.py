"""Acknowledged changes of topics, settings, quotas, voters and features apply at the end of a
run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import alone, healthy
from urteil.harness.verify.synthetic import BEGIN_NS, S

ACT_NS = BEGIN_NS + S
TOPIC = {"path": "/brokers/topics/t", "topic": "t", "topic_id": "id", "replicas": '{"0": [1]}'}
SETTINGS = {"path": "/config/topics/t", "settings": '{"retention.ms": "1"}'}
QUOTAS = {"path": "/config/clients/p1", "settings": '{"producer_byte_rate": "5.0"}'}
MARKED = {"path": "/admin/delete_topics/t", "topic": "t", "topic_id": "id"}
DELETED = {"version": -1}


def act(name: str, subject: str = "t", **columns: Any) -> dict[str, Any]:
    row = {"act": name, "subject": subject, "outcome": "ok", "before": "{}", "after": "{}"}
    return row | {"invoke_ns": ACT_NS, "complete_ns": ACT_NS} | columns


CREATE = act("create", after=json.dumps({"topic_id": "id"}))
DELETE = act("delete", before=json.dumps({"topic_id": "id"}))
GROW = act("add partitions", after=json.dumps({"partitions": 2}))
SET = act("config", after=json.dumps({"retention.ms": "2"}))
RESET = act("config", before=json.dumps({"retention.ms": "2"}), after='{"retention.ms": null}')
VOTERS = {"path": "/quorum/voters", "settings": '{"1001": "x", "1002": "y"}'}
ADD = act("add voter", "q2", after='{"directory": "y"}')
REMOVE = act("remove voter", "q2", after='{"directory": "y"}')
QUOTA = act("quota", "p1", after=json.dumps({"producer_byte_rate": "7"}))
FEATURES = {"path": "/feature", "settings": '{"group.version": 1, "metadata.version": 21}'}
RAISE = act("raise features", "features", after='{"group.version": 1, "metadata.version": 25}')


def sub_kinds(run_dir: Path, states: list[dict[str, Any]], ops: list[dict[str, Any]]) -> list[str]:
    """The findings in a run with these last states and these acts, in order."""
    tables = healthy()
    blank = dict.fromkeys(tables["states"][0]) | {"at_ns": ACT_NS, "version": 0}
    zxid = max(row["zxid"] for row in tables["states"])
    for number, state in enumerate(states, 1):
        tables["states"].append(blank | {"zxid": zxid + number} | state)
    tables["admin_ops"] = [
        op | {"invoke_ns": op["invoke_ns"] + number} for number, op in enumerate(ops)
    ]
    result = alone("undone_administration", run_dir, tables)
    return [finding.sub_kind for finding in result.findings]


@pytest.mark.parametrize(
    ("states", "op", "found"),
    [
        ([], CREATE, "lost topic"),
        ([TOPIC, TOPIC | DELETED], CREATE, "lost topic"),
        ([TOPIC | {"topic_id": "other"}], CREATE, "lost topic"),
        ([TOPIC], DELETE, "returned topic"),
        ([TOPIC], GROW, "lost partitions"),
        ([TOPIC, SETTINGS], SET, "lost setting"),
        ([TOPIC, SETTINGS], RESET, "lost setting"),
        ([TOPIC, SETTINGS, SETTINGS | DELETED], SET, "lost setting"),
        ([QUOTAS], QUOTA, "lost setting"),
        ([VOTERS], REMOVE, "returned voter"),
        ([VOTERS, VOTERS | {"settings": '{"1001": "x"}'}], ADD, "lost voter"),
        ([VOTERS | {"settings": '{"1002": "other"}'}], ADD, "lost voter"),
        ([FEATURES], RAISE, "lowered feature"),
    ],
)
def test_undone_change_is_found(
    states: list[dict[str, Any]], op: dict[str, Any], found: str, tmp_path: Path
) -> None:
    assert sub_kinds(tmp_path / "acknowledged", states, [op]) == [found]
    assert sub_kinds(tmp_path / "unknown", states, [op | {"outcome": "info"}]) == []


@pytest.mark.parametrize(
    ("states", "ops"),
    [
        ([TOPIC], [CREATE]),
        ([TOPIC, TOPIC | DELETED], [DELETE]),
        ([TOPIC | {"topic_id": "other"}], [DELETE]),
        ([TOPIC, MARKED], [DELETE]),
        ([TOPIC, TOPIC | DELETED], [CREATE, DELETE | {"outcome": "info"}]),
        ([TOPIC], [GROW, CREATE]),
        ([TOPIC | {"replicas": '{"0": [1], "1": [2]}'}], [GROW]),
        ([TOPIC, SETTINGS], [SET, SET | {"after": '{"retention.ms": "1"}'}]),
        ([TOPIC, SETTINGS], [SET, RESET | {"outcome": "info"}]),
        ([TOPIC, SETTINGS | {"settings": "{}"}], [RESET]),
        ([TOPIC, SETTINGS], [SET, DELETE | {"outcome": "info"}]),
        ([TOPIC], [SET]),
        ([QUOTAS], [QUOTA | {"after": '{"producer_byte_rate": 5}'}]),
        ([VOTERS], [REMOVE, ADD]),
        ([VOTERS], [REMOVE | {"after": '{"directory": "former disk"}'}]),
        ([FEATURES, FEATURES | {"settings": RAISE["after"]}], [RAISE]),
    ],
    ids=[
        *("created", "deleted", "another topic", "being deleted", "maybe deleted", "made anew"),
        *("grown", "set again", "maybe reset", "default", "deleted since", "no settings", "quota"),
        *("voter added again", "voter with another disk", "raised features"),
    ],
)
def test_change_that_stands_or_was_replaced_yields_nothing(
    states: list[dict[str, Any]], ops: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert sub_kinds(tmp_path, states, ops) == []
