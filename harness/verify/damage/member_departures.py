"""Damage to elections and ISRs of a made-up topic, while brokers leave and return.

Each damage writes states that are later than everything else in the copy: so no fault acts then,
and the stretches that it needs are undisturbed.
"""

from __future__ import annotations

import json
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.verify.damage.added_topics import RETAINED
from urteil.harness.verify.damage.compaction_and_retention import clone
from urteil.harness.verify.damage.copy import Copy, S, brokers, damage
from urteil.harness.verify.evidence import Row


@damage("lose a record below an unclean epoch", "loss_not_a_suffix", "below the epoch", replicas=2)
def lose_below_unclean_epoch(copy: Copy) -> Row:
    """A broker from outside the ISR is elected; its epoch begins at the last record, and an earlier
    one is lost."""
    sends, at_ns = clone(copy, RETAINED), quiet_ns(copy)
    leader = last_state(copy)["leader"]
    outsider = _another_broker(copy, leader)
    add_state(copy, at_ns, isr=[leader])
    add_state(copy, at_ns + S, leader=outsider, isr=[outsider])
    first, *later = sorted({row["leader_epoch"] for row in _states(copy)})
    starts = {first: sends[0]["offset"]} | dict.fromkeys(later, sends[-1]["offset"])
    for row in copy.rows("logs"):
        if row["topic_id"] == RETAINED.topic_id:
            row["epochs"] = json.dumps(starts)
    victim = sends[20]
    for table in ("replicas", "reads"):
        copy.drop(table, lambda row: bool(row["value_id"] == victim["value_id"]))
    return victim


@damage("keep a departed leader in the ISR", "dead_replica_in_isr", "kept in sync", replicas=2)
def keep_departed_leader(copy: Copy) -> None:
    """A leader leaves, another broker is elected, and the ISR contains both of them."""
    clone(copy, RETAINED)
    at_ns, departed = quiet_ns(copy), last_state(copy)["leader"]
    set_presence(copy, departed, at_ns, version=-1)
    add_state(copy, at_ns + S, leader=_another_broker(copy, departed), isr=brokers(copy))
    set_presence(copy, departed, at_ns + 10 * S)


@damage("lead until a shutdown ends", "leadership_not_handed_over", "not handed over", replicas=2)
def lead_until_shutdown_ends(copy: Copy) -> None:
    """A broker shuts down cleanly beside followers in sync, and leaves as the leader."""
    clone(copy, RETAINED)
    at_ns, leader = quiet_ns(copy), last_state(copy)["leader"]
    for broker in brokers(copy):
        set_presence(copy, broker, at_ns)
    add_state(copy, at_ns, leader=leader, isr=brokers(copy))
    set_presence(copy, leader, at_ns + 10 * S, version=-1)
    set_presence(copy, leader, at_ns + 20 * S)
    copy.rows("faults").append(
        {"fault": "made-up shutdown", "effects": json.dumps([Effect.STOPS_NODES])}
        | {"targets": json.dumps([f"b{leader}"]), "begin_ns": at_ns + 8 * S}
        | {"end_ns": at_ns + 20 * S, "healed_ns": at_ns + 20 * S, "proof": "made up", "acted": True}
    )


@damage("leave a partition without a leader", "leaderless_partition", "leaderless")
def leave_leaderless(copy: Copy) -> None:
    """Nobody leads a partition for half a minute, although a member of its ISR and the controller
    are there."""
    clone(copy, RETAINED)
    at_ns, eligible = quiet_ns(copy), brokers(copy)[0]
    set_presence(copy, eligible, at_ns)
    add_row(copy, {"path": "/controller", "at_ns": at_ns, "controller": brokers(copy)[0]})
    add_state(copy, at_ns + S, leader=-1, isr=brokers(copy))
    add_state(copy, at_ns + 31 * S, leader=eligible, isr=brokers(copy))


@damage("pass a partition over in an election", "leaderless_partition", "passed over", replicas=2)
def pass_over(copy: Copy) -> None:
    """A broker leaves. Another partition that it led has another leader a second later; this one
    has none for ten seconds, although a member of its ISR and the controller are there."""
    clone(copy, RETAINED)
    at_ns, departed = quiet_ns(copy), last_state(copy)["leader"]
    eligible = _another_broker(copy, departed)
    for broker in brokers(copy):
        set_presence(copy, broker, at_ns)
    add_row(copy, {"path": "/controller", "at_ns": at_ns, "controller": brokers(copy)[0]})
    add_state(copy, at_ns, isr=brokers(copy))
    other = last_state(copy) | {"topic_id": "other", "topic": "other", "path": "other"}
    add_row(copy, other)
    set_presence(copy, departed, at_ns + 5 * S, version=-1)
    add_row(copy, other | {"at_ns": at_ns + 6 * S, "leader": eligible})
    add_state(copy, at_ns + 16 * S, leader=eligible, isr=brokers(copy))
    set_presence(copy, departed, at_ns + 30 * S)


@damage("shrink an ISR without a cause", "shrunken_isr", "fell out", replicas=2)
def shrink_without_cause(copy: Copy) -> None:
    """All replicas are in sync, then the leader alone is, though no fault acts."""
    clone(copy, RETAINED)
    at_ns, leader = quiet_ns(copy), last_state(copy)["leader"]
    set_presence(copy, leader, at_ns)
    add_state(copy, at_ns + S, leader=leader, isr=brokers(copy))
    add_state(copy, at_ns + 2 * S, isr=[leader])


def quiet_ns(copy: Copy) -> int:
    """Ten seconds after the last state and the last healing."""
    times = [copy.last_ns, *(row["at_ns"] for row in copy.rows("states"))]
    times += [row["healed_ns"] or 0 for row in copy.rows("faults")]
    return int(max(times)) + 10 * S


def _another_broker(copy: Copy, broker: int) -> int:
    return next(other for other in brokers(copy) if other != broker)


def _states(copy: Copy) -> list[Row]:
    """The states of the made-up partition."""
    return [row for row in copy.rows("states") if row["topic_id"] == RETAINED.topic_id]


def last_state(copy: Copy) -> Row:
    return max(_states(copy), key=lambda row: int(row["zxid"]))


def add_state(copy: Copy, at_ns: int, *, isr: list[int], leader: int | None = None) -> Row:
    """Add a state of the made-up partition; with another leader in the next epoch."""
    last = last_state(copy)
    changed = leader not in (None, last["leader"])
    state = {"version": last["version"] + 1, "at_ns": at_ns, "isr": json.dumps(isr)}
    state |= {"leader_epoch": last["leader_epoch"] + int(changed)}
    state |= {"leader": last["leader"] if leader is None else leader}
    return add_row(copy, last | state)


def set_presence(copy: Copy, broker: int, at_ns: int, *, version: int = 0) -> None:
    """A broker's registration is written; with version -1 it is removed."""
    add_row(copy, {"path": f"/brokers/ids/{broker}", "at_ns": at_ns, "version": version})


def add_row(copy: Copy, row: dict[str, Any]) -> Row:
    """Add a row to `states`, behind all others."""
    zxid = max(int(other["zxid"]) for other in copy.rows("states")) + 1
    added = dict.fromkeys(copy.rows("states")[0]) | {"version": 0} | row | {"zxid": zxid}
    copy.rows("states").append(added)
    return added
