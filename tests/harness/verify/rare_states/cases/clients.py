"""Cases of `rare_states/clients.py`."""

from __future__ import annotations

from tests.harness.verify.rare_states.made import Case, Made

ALL = [1, 2, 3]


def passed_on() -> Made:
    """Broker 1 led, and broker 2 at 5 s."""
    return Made().led(0, 1, ALL).led(5, 2, [2, 3])


def five_open(last_outcome: str) -> Made:
    """Five sends that were open at the election."""
    made = passed_on()
    for number in range(5):
        made.send(4, 6, outcome="ok" if number < 4 else last_outcome)
    return made


def polled(*epochs: int) -> Made:
    """A poll with a record of each of these leader epochs."""
    made = Made()
    for position, epoch in enumerate(epochs):
        made.add("reads", position_in_poll=position, offset=position, leader_epoch=epoch, read_s=1)
    return made


CASES: dict[str, Case] = {
    "send_crossed_election": (
        passed_on().send(4, 6, attempts=2),
        passed_on().send(4, 6, attempts=1),
    ),
    "five_sends_open_at_election": (five_open("ok"), five_open("info")),
    "unclear_send_stored": (
        Made().send(1, outcome="info").stored(0),
        Made().send(1, outcome="info").stored(1),
    ),
    "producer_began_new_epoch": (
        Made().send(1).send(2, producer_epoch=1),
        Made().send(1).send(2, client="p2", producer_epoch=1),
    ),
    "acknowledged_without_offset": (
        Made().send(1, offset=None),
        Made().send(1, offset=None, acks=0),
    ),
    "reader_lost_position": (
        Made().add("polls", poll=1, event="reset"),
        Made().add("polls", poll=1, event="rebalance"),
    ),
    "poll_spanned_epochs": (polled(0, 1), polled(1, 1)),
    "killed_with_open_sends": (
        Made().send(1, outcome="info").add("admin_ops", act="kill client", subject="p1",
                                           invoke_s=2),
        Made().send(3, outcome="info").add("admin_ops", act="kill client", subject="p1",
                                           invoke_s=2),
    ),
    "frame_lost_at_election": (
        passed_on().add("link_events", at_s=5.5),
        passed_on().add("link_events", at_s=6.5),
    ),
    "request_repeated_at_election": (
        passed_on().add("link_events", at_s=5.5, act="duplicate"),
        passed_on().add("link_events", at_s=5.5),
    ),
}  # fmt: skip
