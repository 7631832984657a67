"""Cases of `rare_states/replication.py`."""

from __future__ import annotations

from tests.harness.verify.rare_states.made import Case, Made

ALL = [1, 2, 3]


def truncated(*, ack_offset: int, clients: tuple[str, ...] = ("p1",)) -> Made:
    """Records with acks=1 up to an offset; then an epoch that begins at offset 5."""
    made = Made().led(0, 1, ALL).led(9, 2, [2, 3]).log(2, {0: 0, 1: 5})
    for number, client in enumerate(clients):
        made.send(1, 2, client=client, acks=1, offset=ack_offset + number)
    return made


CASES: dict[str, Case] = {
    "isr_of_one_lost_leader": (
        Made().led(0, 1, [1]).led(5, 2, [2]),
        Made().led(0, 1, [1, 2]).led(5, 2, [2]),
    ),
    "isr_fell_to_one_at_once": (
        Made().led(0, 1, ALL).led(5, 1, [1]),
        Made().led(0, 1, ALL).led(5, 1, [1, 2]).led(6, 1, [1]),
    ),
    "acknowledged_by_isr_of_one": (
        Made().led(0, 1, ALL).led(5, 1, [1]).send(6),
        Made().led(0, 1, ALL).led(5, 1, [1]).send(4),
    ),
    "followers_left_in_turn": (
        Made().led(0, 1, ALL).led(5, 1, [1, 2]).led(7, 1, [1]),
        Made().led(0, 1, ALL).led(5, 1, [1, 2]).led(17, 1, [1]),
    ),
    "replica_left_isr_again": (
        Made().led(0, 1, ALL).led(1, 1, [1, 2]).led(2, 1, ALL).led(5, 1, [1, 2]),
        Made().led(0, 1, ALL).led(1, 1, [1, 2]).led(2, 1, ALL).led(5, 1, [1, 3]),
    ),
    "replica_missed_two_epochs": (
        Made().led(0, 1, ALL).led(1, 2, [2, 3]).led(2, 3, [2, 3]).led(5, 3, ALL),
        Made().led(0, 1, ALL).led(1, 2, [2, 3]).led(5, 2, ALL),
    ),
    "former_leader_followed_successor": (
        Made().led(0, 1, ALL).led(1, 2, [2, 3]).led(5, 2, ALL),
        Made().led(0, 1, ALL).led(1, 1, [1, 2]).led(5, 1, ALL),
    ),
    "replica_never_returned": (
        Made().led(0, 1, ALL).led(1, 1, [1, 2]),
        Made().led(0, 1, ALL).led(1, 1, [1, 2]).led(2, 1, ALL),
    ),
    "acknowledged_record_truncated": (truncated(ack_offset=5), truncated(ack_offset=4)),
    "several_batches_truncated": (
        truncated(ack_offset=5, clients=("p1", "p2")),
        truncated(ack_offset=5, clients=("p1", "p1")),
    ),
    "epoch_without_records": (
        Made().led(0, 1, ALL).led(1, 2, ALL).led(2, 3, ALL).log(3, {0: 0, 2: 5}),
        Made().led(0, 1, ALL).led(1, 2, ALL).led(2, 3, ALL).log(3, {0: 0, 1: 3, 2: 5}),
    ),
    "cut_leader_shrank_isr": (
        Made().led(0, 1, ALL).led(5, 1, [1]).fault("cuts_links", 4, 9, "b1->b2"),
        Made().led(0, 1, ALL).led(5, 1, [1]).fault("cuts_links", 6, 9, "b1->b2"),
    ),
}
