"""Repetitions of acknowledged batches: a leader recognises the five newest of each producer."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.suites.simulation.evidence import Evidence, states_of
from urteil.suites.simulation.history import RejectedRepetition


def duplicate(evidence: Evidence) -> Iterator[str]:
    """A repetition that is rejected as out of order is one that the leader does not recognise as a
    duplicate. Only the leader that acknowledged the batch is judged, in the same epoch: a broker
    that restarts may know no more than the last batch of a producer."""
    for each in evidence.history.rejected_repetitions:
        if _is_leader_the_same(evidence, each):
            yield (
                f"{each.send.values[0]}, {each.send.topic}-{each.send.partition}: broker "
                f"{each.node} acknowledged it at {each.send.end_s:.3f} s, and rejected its "
                f"repetition as out of order at {each.complete_s:.3f} s"
            )


def _is_leader_the_same(evidence: Evidence, repetition: RejectedRepetition) -> bool:
    """Whether one broker acknowledged the batch and rejected its repetition, as leader in one
    epoch all the while."""
    send = repetition.send
    states = [
        (change.at_s, (state["leader"], state["leader_epoch"]))
        for place, change, state in states_of(evidence.changes)
        if place == (send.topic, send.partition)
    ]
    before = [led for at_s, led in states if at_s <= send.begin_s][-1:]
    during = [led for at_s, led in states if send.begin_s < at_s <= repetition.complete_s]
    led = {*before, *during}
    return len(led) == 1 and {leader for leader, _ in led} == {send.node} == {repetition.node}
