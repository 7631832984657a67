"""Cases of `rare_states/storage.py`."""

from __future__ import annotations

from tests.harness.verify.rare_states.made import Case, Made

ALL = [1, 2, 3]


def led() -> Made:
    """Broker 1 led all the time."""
    return Made().led(0, 1, ALL)


def on_leader(effect: str) -> Case:
    return led().fault(effect, 1, 5, "b1"), led().fault(effect, 1, 5, "b2")


def killed_twice(second_s: float) -> Made:
    """Broker 2 was killed at 1 s, restarted by 5 s, and killed again."""
    made = Made().fault("kills_nodes", 1, 5, "b2")
    return made.fault("kills_nodes", second_s, second_s + 1, "b2")


def down(*brokers: int) -> Made:
    """These brokers were killed at once."""
    made = led()
    for broker in brokers:
        made.fault("kills_nodes", broker, 9, f"b{broker}")
    return made


def refilled(broker: int) -> Made:
    """The disk of broker 2 was emptied, and a broker left the ISR and returned."""
    made = led().led(2, 1, [b for b in ALL if b != broker]).led(5, 1, ALL)
    return made.fault("empties_disks", 1, 3, "b2")


CASES: dict[str, Case] = {
    "two_faults_on_one_node": (
        Made().fault("pauses_nodes", 1, 5, "b1").fault("cuts_links", 3, 9, "b1->b2"),
        Made().fault("pauses_nodes", 1, 5, "b1").fault("cuts_links", 6, 9, "b1->b2"),
    ),
    "all_replicas_down": (down(1, 2, 3), down(1, 2)),
    "leader_and_follower_down": (down(1, 2), down(2, 3)),
    "broker_killed_right_after_restart": (killed_twice(9), killed_twice(16)),
    "broker_struck_before_return_to_isr": (
        killed_twice(9).led(0, 1, ALL).led(2, 1, [1, 3]),
        killed_twice(9).led(0, 1, ALL).led(2, 1, [1, 3]).led(6, 1, ALL),
    ),
    "power_cut_on_leader": on_leader("loses_writes"),
    "emptied_disk_refilled": (refilled(2), refilled(3)),
    "leader_could_not_write": on_leader("fills_disks"),
    "leader_lost_log_directory": on_leader("removes_disks"),
    "leader_clock_moved": on_leader("moves_clocks"),
    "files_damaged_under_replica": (
        led().fault("damages_files", 1, 5, "b2"),
        led().fault("damages_files", 1, 5, "b4"),
    ),
    "process_exited_by_itself": (
        Made().add("samples", metric="exit_code", source="b1", value=3.0),
        Made().add("samples", metric="starts", source="b1", value=3.0),
    ),
    "fault_began_in_healing": (
        Made().fault("kills_nodes", 1, 9, "b1", healing_s=5).fault("kills_nodes", 7, 9, "b2"),
        Made().fault("kills_nodes", 1, 9, "b1", healing_s=5).fault("kills_nodes", 4, 9, "b2"),
    ),
    "broker_and_metadata_node_struck": (
        Made().fault("kills_nodes", 1, 5, "b1").fault("kills_nodes", 3, 9, "zk1"),
        Made().fault("kills_nodes", 1, 5, "b1").fault("kills_nodes", 3, 9, "b2"),
    ),
    "controller_and_leader_struck": (
        down(1, 3).controllers((0, 3)),
        down(1, 3).controllers((0, 2)),
    ),
}
