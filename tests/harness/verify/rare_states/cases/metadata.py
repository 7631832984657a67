"""Cases of `rare_states/metadata.py`."""

from __future__ import annotations

from tests.harness.verify.rare_states.made import Case, Made

ALL = [1, 2, 3]


def led_by_one() -> Made:
    """Broker 1 led, and broker 2 at 5 s."""
    return Made().led(0, 1, ALL).led(5, 2, [2, 3])


def moved(*, until_s: float) -> Made:
    """A reassignment from 3 s on, and another controller at 5 s."""
    made = Made().led(0, 1, ALL).assigned_replicas(0, 1, 2).assigned_replicas(3, 4, 1, 2)
    return made.assigned_replicas(until_s, 4, 2).controllers((0, 1), (5, 2))


def votes(*candidates: int) -> Made:
    """A vote of each controller in epoch 3, from 1001 on."""
    made = Made()
    for number, candidate in enumerate(candidates):
        made.add("votes", broker=1001 + number, epoch=3, candidate=candidate, position=number,
                 at_s=number)  # fmt: skip
    return made


CASES: dict[str, Case] = {
    "controller_changed_twice": (
        Made().controllers((0, 1), (5, 2), (14, 3)),
        Made().controllers((0, 1), (5, 2), (16, 3)),
    ),
    "controller_lost_office_and_lead": (
        led_by_one().controllers((0, 1), (6, 2)),
        led_by_one().controllers((0, 3), (6, 2)),
    ),
    "no_controller_for_seconds": (
        Made().controllers((0, 1), (5, None), (7.5, 2)),
        Made().controllers((0, 1), (5, None), (6.5, 2)),
    ),
    "controller_changed_in_move": (moved(until_s=6), moved(until_s=4)),
    "controller_changed_in_deletion": (
        Made().controllers((0, 1), (5, 2)).add("admin_ops", act="delete", invoke_s=4, complete_s=6),
        Made().controllers((0, 1), (5, 2)).add("admin_ops", act="delete", invoke_s=2, complete_s=4),
    ),
    "controller_inherited_election": (
        led_by_one().broker(1, 0, 3).controllers((0, 3), (4, 2)),
        led_by_one().broker(1, 0, 3).controllers((0, 3), (2, 2)),
    ),
    "two_controllers_elected_in_turn": (
        Made().led(0, 1, ALL).led(5, 2, ALL).led(9, 3, ALL, office=2),
        Made().led(0, 1, ALL).led(5, 2, ALL).led(9, 3, ALL),
    ),
    "registration_renewed": (Made().broker(1, 0, 5, 6), Made().broker(1, 0, 5, 9)),
    "broker_restarted_while_registered": (
        Made().broker(1, 0, 7, 8).fault("kills_nodes", 5, 9, "b1", healing_s=6),
        Made().broker(1, 0, 7, 9).fault("kills_nodes", 5, 9, "b1", healing_s=8),
    ),
    "two_brokers_absent": (
        Made().broker(1, 0, 5, 9).broker(2, 0, 6, 9),
        Made().broker(1, 0, 5, 6).broker(2, 0, 7, 9),
    ),
    "no_broker_registered": (
        Made().broker(1, 0, 5, 9).broker(2, 0, 6, 9),
        Made().broker(1, 0, 5, 9).broker(2, 0, 6, 9).broker(3, 0),
    ),
    "two_metadata_nodes_struck": (
        Made().fault("kills_nodes", 1, 5, "zk1").fault("pauses_nodes", 3, 9, "zk2"),
        Made().fault("kills_nodes", 1, 5, "zk1").fault("pauses_nodes", 3, 9, "b2"),
    ),
    "vote_was_split": (votes(1001, 1002), votes(1001, 1001)),
    "quorum_epoch_without_leader": (
        votes(1001).add("metadata_logs", broker=1001, base=1, epoch=4, leader=1001, crc=1, size=9,
                        at_s=9),
        votes(1001).add("metadata_logs", broker=1001, base=1, epoch=3, leader=1001, crc=1, size=9,
                        at_s=9),
    ),
    "former_leader_still_named": (led_by_one().named(8, 3, 1, 0), led_by_one().named(6, 3, 1, 0)),
    "brokers_named_two_leaders": (
        led_by_one().named(6, 3, 1, 0).named(6.1, 2, 2, 1),
        led_by_one().named(5, 3, 1, 0).named(6, 2, 2, 1),
    ),
}  # fmt: skip
