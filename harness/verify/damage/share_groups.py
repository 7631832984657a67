"""Damage to what a share group was delivered, in groups of its own, long after the rest."""

from __future__ import annotations

from typing import Any

from urteil.harness.verify.damage.copy import Copy, S, damage, first
from urteil.harness.verify.evidence import Row

_LATER_NS = 1_000_000 * S
"""After everything of any run: no fault of another damage acts."""
_IN_RECORD = ("offset", "key", "value_id", "leader_epoch", "timestamp_ms")
_FAR = 100


@damage("deliver an accepted record again", "settled_redelivered", "accepted")
def redeliver_accepted(copy: Copy) -> Row:
    """A record is accepted, and another member requests and receives it later."""
    victim, group = copy.take(), "made up accepting"
    _deliver(copy, group, victim, 1)
    _deliver(copy, group, victim, 2, client="made up other")
    return victim


@damage("deliver a rejected record again", "settled_redelivered", "rejected")
def redeliver_rejected(copy: Copy) -> Row:
    """The same of a rejected record."""
    victim, group = copy.take(), "made up rejecting"
    _deliver(copy, group, victim, 1, acknowledgement="reject")
    _deliver(copy, group, victim, 2)
    return victim


@damage("deliver an archived record again", "settled_redelivered", "archived")
def redeliver_archived(copy: Copy) -> Row:
    """The same of a record that was released at the delivery limit."""
    victim, group = copy.take(), "made up releasing"
    _deliver(copy, group, victim, 1, acknowledgement="release", delivery_count=_FAR)
    _deliver(copy, group, victim, 2)
    return victim


@damage("skip a record of a share group", "unsettled_record", "never delivered")
def skip_record(copy: Copy) -> Row:
    """Members accept every record but one, and poll on."""
    victim, group = copy.take(), "made up skipping"
    _deliver_others(copy, group, victim)
    return victim


@damage("forget a released record", "unsettled_record", "released")
def forget_released(copy: Copy) -> Row:
    """Members accept every record but one, which is released and never delivered again."""
    victim, group = copy.take(), "made up forgetting"
    _deliver(copy, group, victim, 1, acknowledgement="release")
    _deliver_others(copy, group, victim)
    return victim


@damage("forget a locked record", "unsettled_record", "lock ran out")
def forget_locked(copy: Copy) -> Row:
    """Members accept every record but one, of which a member says nothing."""
    victim, group = copy.take(), "made up silent"
    silent = dict.fromkeys(("acknowledgement", "invoke_ns", "complete_ns", "outcome"))
    _deliver(copy, group, victim, 1, **silent)
    _deliver_others(copy, group, victim)
    return victim


@damage("deliver a locked record", "two_holders", "held by another")
def deliver_locked(copy: Copy) -> Row:
    """A member requests and receives a record that another one has just received."""
    victim, group = copy.take(), "made up sharing"
    row = _deliver(copy, group, victim, 1)
    row |= {"invoke_ns": row["read_ns"] + S, "complete_ns": row["read_ns"] + S + 1}
    times = {"requested_ns": row["read_ns"] + 1, "read_ns": row["read_ns"] + 2}
    _deliver(copy, group, victim, 1, client="made up other", **times)
    return victim


@damage("deliver a record beyond the limit", "delivery_over_limit", "over the limit")
def deliver_beyond_limit(copy: Copy) -> Row:
    """A broker counts more deliveries than the limit permits."""
    victim = copy.take()
    _deliver(copy, "made up counting", victim, 1, delivery_count=_FAR)
    return victim


def _deliver(copy: Copy, group: str, send: Row, turn: int, **columns: Any) -> Row:
    """A delivery that is accepted at once, in the given hour of the group."""
    at_ns = copy.last_ns + _LATER_NS + turn * 3600 * S
    times = {"requested_ns": at_ns, "read_ns": at_ns + 1, "invoke_ns": at_ns + 2}
    row: Row = {
        **{name: send.get(name) for name in ("topic_id", "topic", "partition", *_IN_RECORD)},
        **times,
        **{"client": f"{group} member", "session": 0, "group": group, "poll": turn},
        **{"intact": True, "delivery_count": turn, "acknowledgement": "accept"},
        **{"complete_ns": at_ns + 3, "outcome": "ok", "error": None},
        **columns,
    }
    copy.rows("deliveries").append(row)
    return row


def _deliver_others(copy: Copy, group: str, victim: Row) -> None:
    """All other records are accepted, and a member polls a day later."""
    for send in copy.rows("sends"):
        if send["value_id"] != victim["value_id"]:
            row = _deliver(copy, group, send, 1)
    at_ns = row["read_ns"] + 24 * 3600 * S
    client = {name: row[name] for name in ("client", "session")}
    absent = ("error", "topic_id", "topic", "partition", "position_before", "position_after")
    times = {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "event": None}
    copy.rows("polls").append(
        client | {"poll": 2} | times | dict.fromkeys(absent) | {"outcome": "ok"}
    )
    life = {"kind": "share_consumer", "group": None, "begin_ns": None, "end_ns": None}
    copy.rows("clients").append(first(copy.rows("clients")) | client | life)
