"""Acknowledged changes of topics, settings, quotas, voters and features, compared with the last
states: rows of the derived table `acknowledged_changes`.

The evidence contains only the lab's own acts, on the first cluster of a run. A change is judged if
no later act, acknowledged or not, concerns the same object. An act is acknowledged once the lab saw
its effect in the metadata plane's state. Settings are judged only where the states contain
settings; states of older runs do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from urteil.harness.evidence.acts import (
    ADD_VOTER,
    FEATURES,
    QUORUM_VOTERS,
    RAISE_FEATURES,
    REMOVE_VOTER,
)
from urteil.harness.evidence.limits import SECOND_ZXID
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row

CREATE, DELETE, ADD_PARTITIONS = "create", "delete", "add partitions"
CONFIG, QUOTA = "config", "quota"
_TOPICS, _DELETIONS = "/brokers/topics/", "/admin/delete_topics/"
_TOPIC_SETTINGS, _CLIENT_QUOTAS = "/config/topics/", "/config/clients/"
_DELETED = -1


def change_rows(small: SmallEvidence, end_ns: int) -> list[Row]:
    """One row for each change; `undone` is 1 where the last states contradict it."""
    states = sorted(
        (row for row in small.states if row["zxid"] < SECOND_ZXID), key=lambda row: int(row["zxid"])
    )
    last = {str(row["path"]): row for row in states}
    ops = sorted(small.ops, key=lambda op: int(op["invoke_ns"] or 0))
    has_settings = any(row.get("settings") is not None for row in states)
    rows = [*_topics(ops, last), *_partitions(ops, last), *_voters(ops, last)]
    rows += _features(ops, last)
    rows += [*_settings(ops, last), *_quotas(ops, last)] if has_settings else []
    return [
        {"kind": kind, "at_ns": op["complete_ns"], "until_ns": end_ns, "change": change}
        | {"actual": actual, "undone": int(actual is not None)}
        for kind, op, change, actual in rows
    ]


_Change = tuple[str, Row, str, str | None]
"""Kind, act, requested change, and the actual state; None where the state agrees with the change.
"""


def _topics(ops: Sequence[Row], last: dict[str, Row]) -> Iterator[_Change]:
    """The last creation or deletion of each topic."""
    for topic, op in _last_acts(ops, (CREATE, DELETE)).items():
        present_id = _last_state(last, _TOPICS + topic).get("topic_id")
        topic_id = _object(op["after" if op["act"] == CREATE else "before"]).get("topic_id")
        if not _is_acknowledged(op) or not topic_id:
            continue
        if op["act"] == CREATE:
            actual = None if present_id == topic_id else "it does not exist"
            yield "lost topic", op, f"that {topic} exist", actual
        elif not _last_state(last, _DELETIONS + topic):
            actual = "it exists" if present_id == topic_id else None
            yield "returned topic", op, f"that {topic} be deleted", actual


def _partitions(ops: Sequence[Row], last: dict[str, Row]) -> Iterator[_Change]:
    """The last increase of partitions of each topic, if the topic was neither created nor deleted
    later."""
    for topic, op in _last_acts(ops, (CREATE, DELETE, ADD_PARTITIONS)).items():
        total = _object(op["after"]).get("partitions")
        if op["act"] != ADD_PARTITIONS or not _is_acknowledged(op) or total is None:
            continue
        count = len(_object(_last_state(last, _TOPICS + topic).get("replicas")))
        actual = None if count >= total else f"it has {count}"
        yield "lost partitions", op, f"that {topic} have {total} partitions", actual


def _settings(ops: Sequence[Row], last: dict[str, Row]) -> Iterator[_Change]:
    """The last change of each setting of a topic, if the topic was neither created nor deleted
    later."""
    changes: dict[tuple[str, str], tuple[Row, Any]] = {}
    for op in ops:
        topic = str(op["subject"])
        if op["act"] in (CREATE, DELETE):
            changes = {key: change for key, change in changes.items() if key[0] != topic}
        elif op["act"] == CONFIG:
            names = _object(op["after"]).keys() | _object(op["before"]).keys()
            values = _object(op["after"])
            changes |= {(topic, name): (op, values.get(name)) for name in names}
    for (topic, name), (op, value) in changes.items():
        if _is_acknowledged(op):
            node = _last_state(last, _TOPIC_SETTINGS + topic)
            current = _object(node.get("settings")).get(name)
            actual = None if current == value else f"it is {_value(current)}"
            yield "lost setting", op, f"that {name} of {topic} be {_value(value)}", actual


def _quotas(ops: Sequence[Row], last: dict[str, Row]) -> Iterator[_Change]:
    """The last change of the quotas of each client id."""
    for client, op in _last_acts(ops, (QUOTA,)).items():
        if not _is_acknowledged(op):
            continue
        node = _last_state(last, _CLIENT_QUOTAS + client)
        current = _numbers(_object(node.get("settings")))
        quotas = _numbers(_object(op["after"]))
        actual = None if current == quotas else f"they are {current}"
        yield "lost setting", op, f"that the quotas of {client} be {quotas}", actual


def _voters(ops: Sequence[Row], last: dict[str, Row]) -> Iterator[_Change]:
    """The last change of each voter of a dynamic quorum, identified by its log directory's id."""
    voters = _object(_last_state(last, QUORUM_VOTERS).get("settings")).values()
    for node, op in _last_acts(ops, (ADD_VOTER, REMOVE_VOTER)).items():
        directory = _object(op["after"]).get("directory")
        if not _is_acknowledged(op) or not directory:
            continue
        if op["act"] == ADD_VOTER:
            actual = None if directory in voters else "it is not a voter"
            yield "lost voter", op, f"that {node} be a voter", actual
        else:
            actual = "it is a voter" if directory in voters else None
            yield "returned voter", op, f"that {node} be removed from the voters", actual


def _features(ops: Sequence[Row], last: dict[str, Row]) -> Iterator[_Change]:
    """The last acknowledged levels of all features."""
    levels = _object(_last_state(last, FEATURES).get("settings"))
    for op in _last_acts(ops, (RAISE_FEATURES,)).values():
        if not _is_acknowledged(op):
            continue
        for feature, level in _object(op["after"]).items():
            current = levels.get(feature, 0)
            actual = None if current >= level else f"it is {current}"
            yield "lowered feature", op, f"that {feature} be {level}", actual


def _last_acts(ops: Sequence[Row], acts: Sequence[str]) -> dict[str, Row]:
    return {str(op["subject"]): op for op in ops if op["act"] in acts}


def _is_acknowledged(op: Row) -> bool:
    return op["outcome"] == "ok" and op["complete_ns"] is not None


def _last_state(last: dict[str, Row], path: str) -> Row:
    """The last state of a path; empty where the path never existed or was deleted."""
    node = last.get(path, {})
    return {} if node.get("version") == _DELETED else node


def _object(text: str | None) -> dict[str, Any]:
    """The JSON object in a column; empty where the column contains none."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _numbers(quotas: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in sorted(quotas.items())}


def _value(value: Any) -> str:
    return "the default" if value is None else str(value)
