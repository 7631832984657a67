"""Evidence of an administrator: the sound one, and one in which a promise is broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from urteil.suites.simulation.evidence import Evidence
from urteil.suites.simulation.history import Act
from urteil.suites.simulation.zookeeper import Change

CREATED_S, MOVED_S, CANCELLED_S, ELECTED_S, DELETED_S = 10.0, 20.0, 30.0, 40.0, 50.0
TOPIC = "/brokers/topics/t"


def put(evidence: Evidence, at_s: float, path: str, content: Mapping[str, Any] | None) -> None:
    """A version of a node; None deletes it."""
    data = None if content is None else json.dumps(content).encode()
    zxid = round(at_s * 1000)
    evidence.changes.append(Change(at_s, zxid, path, data, zxid))


def act(evidence: Evidence, kind: str, topic: str, asked: Any, at_s: float, **other: Any) -> None:
    given = {"client": "boss", "kind": kind, "topic": topic, "partition": None, "asked": asked,
             "begin_s": at_s, "end_s": at_s + 0.1, "outcome": "ok"}  # fmt: skip
    evidence.history.acts.append(Act(**(given | other)))


def topic(replicas: list[int], adding: list[int] | None = None) -> dict[str, Any]:
    moving = {} if adding is None else {"0": adding}
    return {"partitions": {"0": replicas}, "adding_replicas": moving, "removing_replicas": {}}


def lead(evidence: Evidence, at_s: float, name: str, leader: int, epoch: int) -> None:
    state = {"leader": leader, "isr": [1, 2], "leader_epoch": epoch, "controller_epoch": 1}
    put(evidence, at_s, f"/brokers/topics/{name}/partitions/0/state", state)


def administer(evidence: Evidence) -> None:
    """u1 is created, configured and deleted, and u2 created; t-0 moves to 2 and 1, a further move
    is cancelled, and 2 is elected."""
    evidence.folders = {1: ["/data", "/data/t-0"], 2: ["/data", "/data/t-0"]}
    put(evidence, 0.0, TOPIC, topic([1, 2]))
    for name in ("u1", "u2"):
        act(evidence, "create", name, 1, CREATED_S)
        put(evidence, CREATED_S, f"/brokers/topics/{name}", topic([1, 2]))
        act(evidence, "configure", name, "5", CREATED_S + 1)
        settings = {"version": 1, "config": {"retention.ms": "5"}}
        put(evidence, CREATED_S + 1, f"/config/topics/{name}", settings)
    act(evidence, "move", "t", [2, 1], MOVED_S, partition=0)
    put(evidence, MOVED_S, TOPIC, topic([2, 1]))
    act(evidence, "move", "t", [2, 3], CANCELLED_S - 3, partition=0)
    put(evidence, CANCELLED_S - 3, TOPIC, topic([2, 3, 1], [3]))
    act(evidence, "cancel", "t", None, CANCELLED_S, partition=0)
    put(evidence, CANCELLED_S, TOPIC, topic([2, 1]))
    act(evidence, "elect", "t", None, ELECTED_S, partition=0)
    lead(evidence, ELECTED_S, "t", 2, 1)
    act(evidence, "delete", "u1", None, DELETED_S)
    put(evidence, DELETED_S, "/admin/delete_topics/u1", {})
    for path in ("/brokers/topics/u1", "/config/topics/u1", "/admin/delete_topics/u1"):
        put(evidence, DELETED_S + 1, path, None)


def lose_a_topic(evidence: Evidence) -> None:
    put(evidence, 60.0, "/brokers/topics/u2", None)


def return_a_topic(evidence: Evidence) -> None:
    put(evidence, 60.0, "/brokers/topics/u1", topic([1, 2]))


def lose_partitions(evidence: Evidence) -> None:
    act(evidence, "grow", "u2", 2, 60.0)


def lose_a_setting(evidence: Evidence) -> None:
    put(evidence, 60.0, "/config/topics/u2", {"version": 1, "config": {}})


def leave_a_deletion(evidence: Evidence) -> None:
    put(evidence, 60.0, "/admin/delete_topics/u2", {})


def leave_a_move(evidence: Evidence) -> None:
    put(evidence, 60.0, TOPIC, topic([2, 1, 3], [3]))


def put_replicas_elsewhere(evidence: Evidence) -> None:
    act(evidence, "move", "u2", [2, 3], 60.0, partition=0)


def ignore_a_cancellation(evidence: Evidence) -> None:
    evidence.changes = [
        change for change in evidence.changes
        if change.path != TOPIC or change.at_s != CANCELLED_S
    ]  # fmt: skip
    put(evidence, CANCELLED_S + 5, TOPIC, topic([2, 3]))
    evidence.folders = {2: ["/data/t-0"], 3: ["/data/t-0"]}


def ignore_an_election(evidence: Evidence) -> None:
    lead(evidence, ELECTED_S + 5, "t", 2, 2)
    evidence.changes = [change for change in evidence.changes if change.at_s != ELECTED_S]


def lead_astray(evidence: Evidence) -> None:
    lead(evidence, 60.0, "t", 1, 2)


def keep_a_moved_log(evidence: Evidence) -> None:
    evidence.folders[3] = ["/data/t-0"]


def keep_a_marked_folder(evidence: Evidence) -> None:
    evidence.folders[1].append(f"/data/u1-0.{1:032x}-delete")


DAMAGE: dict[Callable[[Evidence], None], str] = {
    lose_a_topic: "undone_administration",
    return_a_topic: "undone_administration",
    lose_partitions: "undone_administration",
    lose_a_setting: "undone_administration",
    leave_a_deletion: "unfinished_administration",
    leave_a_move: "unfinished_administration",
    put_replicas_elsewhere: "unfinished_administration",
    ignore_a_cancellation: "unfinished_administration",
    ignore_an_election: "preferred_leader_ignored",
    lead_astray: "preferred_leader_ignored",
    keep_a_moved_log: "leftover_log",
    keep_a_marked_folder: "leftover_log",
}
