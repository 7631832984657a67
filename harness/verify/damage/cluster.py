"""Damage to the cluster's states, and crashes from which the cluster does not recover."""

from __future__ import annotations

import json
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.evidence.acts import (
    ADD_VOTER,
    FEATURES,
    QUORUM_VOTERS,
    RAISE_FEATURES,
    REMOVE_VOTER,
)
from urteil.harness.evidence.broker_lives import CLOSED, EXIT_CODE, RUNNING, WHILE
from urteil.harness.verify.damage.copy import (
    Copy,
    S,
    brokers,
    damage,
    first,
    followers,
    leader,
    states,
)
from urteil.harness.verify.evidence import Row


@damage("elect under a deposed controller", "epoch_went_back", "deposed controller")
def elect_by_deposed(copy: Copy) -> None:
    """A leader's epoch begins under a controller whose successor was elected long before."""
    last = states(copy)[-1]
    newer = {"path": "/controller_epoch", "controller_epoch": (last["controller_epoch"] or 0) + 1}
    _add_rows(copy, newer)
    _add_state(copy, at_ns=last["at_ns"] + 2 * S, leader_epoch=last["leader_epoch"] + 1)


@damage("shrink the ISR below its minimum", "ack_below_min_isr", "acknowledged", replicas=2)
def shrink_isr(copy: Copy) -> Row:
    """A send with acks=all is acknowledged while the ISR is the leader alone, from 3 s before it to
    3 s after it."""
    victim = copy.victims.pop(copy.victims.index(first(r for r in copy.victims if r["acks"] == -1)))
    since_ns, until_ns = victim["invoke_ns"] - 3 * S, victim["complete_ns"] + 3 * S
    copy.drop("states", lambda row: since_ns < row["at_ns"] <= until_ns)
    base = first(reversed([row for row in states(copy) if row["at_ns"] <= since_ns]))
    for row in copy.rows("states"):
        if row["zxid"] > base["zxid"]:
            row |= {"zxid": row["zxid"] + 2, "version": row["version"] + 2}
    leader_id = victim["node"] = base["leader"]
    zxid, version = base["zxid"], base["version"]
    short = {"leader": leader_id, "isr": json.dumps([leader_id]), "at_ns": since_ns}
    copy.rows("states").extend(
        [
            base | short | {"zxid": zxid + 1, "version": version + 1},
            base | {"at_ns": until_ns, "zxid": zxid + 2, "version": version + 2},
        ]
    )
    return victim


def _add_state(copy: Copy, **changes: Any) -> None:
    last = states(copy)[-1]
    after = {"zxid": last["zxid"] + 1, "at_ns": last["at_ns"] + S, "version": last["version"] + 1}
    copy.rows("states").append(last | after | changes)


@damage("elect a leader from outside the ISR", "unclean_leader", "outside the ISR")
def elect_outsider(copy: Copy) -> None:
    """A broker from outside the ISR leads for a moment."""
    outsider, leader_id = max(brokers(copy)) + 1000, leader(copy)
    epoch = max(row["leader_epoch"] for row in states(copy)) + 1
    isr = json.dumps([outsider, *brokers(copy)])
    _add_state(copy, leader=outsider, isr=isr, leader_epoch=epoch)
    _add_state(copy, leader=leader_id, isr=json.dumps(brokers(copy)), leader_epoch=epoch + 1)


@damage("lower a leader epoch", "epoch_went_back", "leader")
def lower_epoch(copy: Copy) -> None:
    _add_state(copy, leader_epoch=states(copy)[-1]["leader_epoch"] - 1)


@damage("lower a controller epoch", "epoch_went_back", "controller")
def lower_controller_epoch(copy: Copy) -> None:
    _add_state(copy, controller_epoch=(states(copy)[-1]["controller_epoch"] or 0) - 1)


@damage("repeat a partition epoch", "epoch_went_back", "partition")
def repeat_version(copy: Copy) -> None:
    _add_state(copy, version=states(copy)[-1]["version"])


@damage("acknowledge nothing during a crash", "no_progress", "stalled", replicas=2)
def stall_during_crash(copy: Copy) -> None:
    """During a crash of one broker nothing is acknowledged, although a send is pending."""
    crash = _make_crash(copy)
    waiting = {"value_id": "made up/waiting/0", "outcome": "info", "offset": None}
    last = max(copy.rows("sends"), key=lambda row: int(row["invoke_ns"]))
    times = {"invoke_ns": crash["begin_ns"], "complete_ns": None}
    copy.rows("sends").append(last | waiting | times)
    copy.tables["faults"] = [crash]


@damage("leave the ISR short after healing", "slow_recovery", "late")
def keep_isr_short(copy: Copy) -> None:
    """After a crash was healed, the ISR stays short."""
    crash = _make_crash(copy)
    _add_state(copy, isr=json.dumps(followers(copy)[:1]), at_ns=crash["begin_ns"] + 1)
    copy.tables["faults"] = [crash]


@damage("keep a deleted topic", "unfinished_administration", "not deleted")
def keep_deleted_topic(copy: Copy) -> None:
    """The deletion of a topic is requested, and the topic remains."""
    request = {"path": "/admin/delete_topics/gone", "topic": "gone", "topic_id": "gone"}
    _add_rows(copy, {"path": "/brokers/ids/1"}, request)


@damage("leave a reassignment undone", "unfinished_administration", "not moved", replicas=2)
def leave_reassignment_undone(copy: Copy) -> None:
    """A reassignment reverses the order of a partition's replicas, and is never carried out."""
    last, replicas = states(copy)[-1], brokers(copy)
    path = f"/brokers/topics/{last['topic']}"
    place = {"topic": last["topic"], "topic_id": last["topic_id"]}
    partition = str(last["partition"])
    _add_rows(
        copy, {"path": "/brokers/ids/1"},
        place | {"path": path, "replicas": json.dumps({partition: replicas})},
    )  # fmt: skip
    requested = json.dumps({partition: [f"b{broker}" for broker in reversed(replicas)]})
    act = {"act": "reassign", "subject": last["topic"], "after": requested, "outcome": "ok"}
    copy.rows("admin_ops").append(act | {"invoke_ns": copy.last_ns, "complete_ns": copy.last_ns})


@damage("lose a topic that was created", "undone_administration", "lost topic")
def lose_created_topic(copy: Copy) -> None:
    """The creation of a topic is acknowledged, and no state has the topic."""
    _acknowledge(copy, "create", "never-seen", {"after": {"topic_id": "never seen"}})


@damage("let a deleted topic return", "undone_administration", "returned topic")
def return_deleted_topic(copy: Copy) -> None:
    """The deletion of a topic is acknowledged, and the topic exists at the end."""
    place = {"topic": "returned", "topic_id": "returned"}
    _add_rows(copy, place | {"path": "/brokers/topics/returned", "replicas": "{}"})
    _acknowledge(copy, "delete", "returned", {"before": {"topic_id": "returned"}})


@damage("lose partitions that were added", "undone_administration", "lost partitions")
def lose_added_partitions(copy: Copy) -> None:
    """The growth of a topic is acknowledged, and its partitions are as few as before."""
    place = {"topic": "grown", "topic_id": "grown"}
    _add_rows(copy, place | {"path": "/brokers/topics/grown", "replicas": '{"0": [1]}'})
    _acknowledge(copy, "add partitions", "grown", {"after": {"partitions": 2}})


@damage("lose a setting of a topic", "undone_administration", "lost setting")
def lose_setting(copy: Copy) -> None:
    """The change of a setting is acknowledged, and the topic does not have it."""
    _add_rows(copy, {"path": "/config/topics/set", "settings": "{}"})
    _acknowledge(copy, "config", "set", {"after": {"retention.ms": "1"}})


@damage("lose a voter that was added", "undone_administration", "lost voter")
def lose_added_voter(copy: Copy) -> None:
    """The addition of a voter is acknowledged, and the quorum's voters are others."""
    _add_rows(copy, {"path": QUORUM_VOTERS, "settings": '{"1": "first"}'})
    _acknowledge(copy, ADD_VOTER, "q2", {"after": {"directory": "second"}})


@damage("keep a voter that was removed", "undone_administration", "returned voter")
def keep_removed_voter(copy: Copy) -> None:
    """The removal of a voter is acknowledged, and it is a voter at the end."""
    _add_rows(copy, {"path": QUORUM_VOTERS, "settings": '{"3": "third"}'})
    _acknowledge(copy, REMOVE_VOTER, "q3", {"after": {"directory": "third"}})


@damage("lower a feature that was raised", "undone_administration", "lowered feature")
def lower_feature(copy: Copy) -> None:
    """A higher level of a feature is acknowledged, and it has the lower one at the end."""
    _add_rows(copy, {"path": FEATURES, "settings": '{"metadata.version": 21}'})
    _acknowledge(copy, RAISE_FEATURES, "features", {"after": {"metadata.version": 25}})


def _acknowledge(copy: Copy, act: str, subject: str, details: dict[str, dict[str, Any]]) -> None:
    row = {"act": act, "subject": subject, "before": "{}", "after": "{}", "outcome": "ok"}
    moments = {"invoke_ns": copy.last_ns, "complete_ns": copy.last_ns}
    texts = {name: json.dumps(value) for name, value in details.items()}
    copy.rows("admin_ops").append(row | moments | texts)


@damage("answer an election that never took place", "preferred_leader_ignored", "not elected",
        replicas=2)  # fmt: skip
def skip_preferred_election(copy: Copy) -> None:
    """The election of a follower is answered as successful, and it never leads."""
    last, follower = states(copy)[-1], followers(copy)[0]
    partition, at_ns = last["partition"], max(copy.last_ns, last["at_ns"]) + 30 * S
    report = {"partitions": [partition], "elected": {str(partition): f"b{follower}"}}
    copy.rows("admin_ops").append(
        {"act": "elect preferred", "subject": f"{last['topic']}-{partition}", "outcome": "ok"}
        | {"invoke_ns": at_ns, "complete_ns": at_ns, "after": json.dumps(report)}
    )


def _add_rows(copy: Copy, *nodes: Row) -> None:
    """Add states of znodes that hold no partition's state."""
    last = states(copy)[-1]
    for node in nodes:
        row = dict.fromkeys(last) | {"zxid": last["zxid"], "at_ns": last["at_ns"], "version": 0}
        copy.rows("states").append(row | node)


def _make_crash(copy: Copy) -> Row:
    begin_ns = max(copy.last_ns, states(copy)[-1]["at_ns"]) + S // 2
    end_ns = begin_ns + copy.grace_ns + 5 * S
    return {
        "fault": "made-up crash",
        "effects": json.dumps([Effect.KILLS_NODES]),
        "targets": '["b1"]',
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "healed_ns": end_ns,
        "proof": "made up",
        "acted": True,
    }


@damage("let a broker exit by itself", "unexpected_exit", RUNNING)
def exit_by_itself(copy: Copy) -> None:
    """A broker's process exits with a code, although neither the lab nor a fault stopped it."""
    copy.rows("samples").append(
        {"at_ns": copy.last_ns, "source": f"b{brokers(copy)[0]}", "metric": EXIT_CODE}
        | {"labels": json.dumps({WHILE: RUNNING}), "value": 1.0}
    )


@damage("let a broker stop to serve", "unexpected_exit", CLOSED)
def refuse_connections(copy: Copy) -> None:
    """A broker's process runs after healing, and its address refuses connections."""
    copy.rows("samples").append(
        {"at_ns": copy.last_ns, "source": f"b{brokers(copy)[0]}", "metric": CLOSED}
        | {"labels": "{}", "value": 1.0}
    )
