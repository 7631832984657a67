"""Cases of `rare_states/elections.py`."""

from __future__ import annotations

from tests.harness.verify.rare_states.made import Case, Made

ALL = [1, 2, 3]


def passed_on() -> Made:
    """Broker 1 led, and broker 2 at 5 s."""
    return Made().led(0, 1, ALL).led(5, 2, [2, 3])


def three_partitions(*times_s: float) -> Made:
    """Three partitions with new leaders at these times."""
    made = Made()
    for n, at_s in enumerate(times_s):
        made.led(0, 1, ALL, n=n).led(at_s, 2, ALL, n=n)
    return made


CASES: dict[str, Case] = {
    "unclean_election": (
        Made().led(0, 1, [1]).led(5, 2, [2]),
        Made().led(0, 1, [1, 2]).led(5, 2, [2]),
    ),
    "preferred_leader_returned": (
        Made().led(0, 2, ALL).led(5, 1, ALL),
        Made().led(0, 2, ALL).led(5, 3, ALL),
    ),
    "epoch_rose_twice_in_a_second": (
        Made().led(0, 1, ALL).led(5, 2, ALL).led(5.9, 3, ALL),
        Made().led(0, 1, ALL).led(5, 2, ALL).led(6.1, 3, ALL),
    ),
    "partition_without_leader": (
        Made().led(0, 1, [1]).led(5, -1, [1]),
        Made().led(0, 1, [1]).led(5, 2, [2]),
    ),
    "last_replica_returned_as_leader": (
        Made().led(0, 1, [1]).led(5, -1, [1]).led(9, 1, [1]),
        Made().led(0, 1, [1]).led(5, -1, [1]).led(9, 2, [2]),
    ),
    "leader_regained_lead": (
        Made().led(0, 1, ALL).led(5, 2, ALL).led(14, 1, ALL),
        Made().led(0, 1, ALL).led(5, 2, ALL).led(16, 1, ALL),
    ),
    "every_replica_led": (
        Made().led(0, 1, ALL).led(5, 2, ALL).led(6, 3, ALL),
        Made().led(0, 1, ALL).led(5, 2, ALL).led(6, 1, ALL),
    ),
    "whole_topic_changed_leaders": (three_partitions(5, 5.5, 5.9), three_partitions(5, 5.5, 6.9)),
    "leader_elected_alone": (
        Made().led(0, 1, ALL).led(5, 2, [2]),
        Made().led(0, 1, ALL).led(5, 2, [2, 3]),
    ),
    "elected_right_after_return": (
        Made().led(0, 1, ALL).led(1, 1, [1, 3]).led(5, 1, ALL).led(6, 2, ALL),
        Made().led(0, 1, ALL).led(1, 1, [1, 3]).led(5, 1, ALL).led(6, 3, ALL),
    ),
    "new_leader_struck": (
        passed_on().fault("kills_nodes", 7, 9, "b2"),
        passed_on().fault("kills_nodes", 7, 9, "b3"),
    ),
    "paused_leader_deposed": (
        passed_on().fault("pauses_nodes", 1, 9, "b1"),
        passed_on().fault("pauses_nodes", 1, 4, "b1"),
    ),
    "cut_leader_deposed": (
        passed_on().fault("cuts_links", 1, 9, "b1->zk1"),
        passed_on().fault("cuts_links", 1, 9, "b3->zk1"),
    ),
    "stopped_leader_handed_over": (
        passed_on().fault("stops_nodes", 1, 9, "b1"),
        passed_on().fault("kills_nodes", 1, 9, "b1"),
    ),
    "epoch_rose_under_same_leader": (
        Made().led(0, 1, ALL).led(5, 1, [1, 2], leader_epoch=1),
        Made().led(0, 1, ALL).led(5, 1, [1, 2]),
    ),
}
