"""Cases of `rare_states/administration.py`."""

from __future__ import annotations

from typing import Any

from tests.harness.verify.rare_states.made import Case, Made

ALL = [1, 2, 3]


def moved(leader: int = 1) -> Made:
    """A reassignment from brokers 1 and 2 to 4 and 2, from 3 s to 6 s."""
    made = Made().led(0, leader, [1, 2]).assigned_replicas(0, 1, 2).assigned_replicas(3, 4, 1, 2)
    return made.assigned_replicas(6, 4, 2)


def grown(isr: list[int], *last: int) -> Made:
    """Broker 3 was added at 3 s; this was the ISR at 5 s, and these the replicas at 6 s."""
    made = Made().led(0, 1, [1, 2]).assigned_replicas(0, 1, 2).assigned_replicas(3, 1, 2, 3)
    made.led(5, 1, isr)
    return made.assigned_replicas(6, *last) if last else made


def act(name: str, at_s: float, **columns: Any) -> Made:
    """An act that lasted a second, while broker 3 was absent from 5 s to 9 s."""
    made = Made().broker(3, 0, 5, 9)
    return made.add("admin_ops", act=name, invoke_s=at_s, complete_s=at_s + 1, **columns)


def without_broker(name: str) -> Case:
    return act(name, 7), act(name, 3)


def set_at_election(at_s: float) -> Made:
    """An election at 5 s, and a change of the topic's settings that was requested at a time."""
    return act("config", at_s).led(0, 1, ALL).led(5, 2, ALL)


def denied(at_s: float) -> Made:
    """A right that was used at 1 s and revoked at 5 s; a denial at a time."""
    subject = "user1 reads t"
    made = Made().add("admin_ops", act="revoke", subject=subject, invoke_s=5, complete_s=6)
    made.add("accesses", outcome="ok", invoke_s=1, complete_s=2)
    return made.add("accesses", outcome="denied", invoke_s=at_s)


CASES: dict[str, Case] = {
    "leader_removed_by_move": (
        moved().led(5, 2, [2, 4]),
        moved(leader=2).led(5, 4, [2, 4]),
    ),
    "new_replica_struck_in_move": (
        moved().fault("kills_nodes", 4, 9, "b4"),
        moved().fault("kills_nodes", 4, 9, "b2"),
    ),
    "move_unfinished": (grown([1, 2]), grown(ALL)),
    "replicas_added": (grown(ALL), moved()),
    "move_cancelled": (
        Made().add("admin_ops", act="cancel moves", before='{"0": [1, 2]}'),
        Made().add("admin_ops", act="cancel moves", before='{"0": null}'),
    ),
    "topic_deleted_without_broker": without_broker("delete"),
    "partitions_added_without_broker": without_broker("add partitions"),
    "topic_created_without_broker": without_broker("create"),
    "topic_created_again": (
        Made().led(0, 1, ALL).led(5, 1, ALL, topic_id="other"),
        Made().led(0, 1, ALL).led(5, 1, ALL),
    ),
    "topic_deleted_with_open_sends": (
        act("delete", 7).send(7.5, 9),
        act("delete", 7).send(1, 2),
    ),
    "setting_changed_at_election": (set_at_election(5.5), set_at_election(6.5)),
    "two_acts_at_once": (
        act("create", 7).add("admin_ops", act="config", invoke_s=7.5, complete_s=9),
        act("create", 7).add("admin_ops", act="config", invoke_s=8.5, complete_s=9),
    ),
    "act_without_success": (act("create", 7, outcome="info"), act("create", 7)),
    "right_revoked_in_use": (denied(7), denied(4)),
    "transaction_left_to_initialisation": (
        act("initialise", 7, outcome="fail"),
        act("initialise", 7),
    ),
}
