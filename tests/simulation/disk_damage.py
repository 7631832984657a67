"""Evidence of files on disks, of leader epochs and of a controlled shutdown, and what is wrong
with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.recovery_damage import put
from urteil.suites.simulation.disturbances import DOWN, Disturbance, Stop
from urteil.suites.simulation.evidence import Evidence
from urteil.suites.simulation.history import EpochEnd

PLACE = ("t", 0)
ENTRY = {
    "segment_base": 0, "kind": "offset", "entry": 0, "offset": 2, "position": 170,
    "there": "batch", "there_base": 2, "there_last": 2, "there_timestamp_ms": 0,
    "before_timestamp_ms": 0,
}  # fmt: skip


def have_files(evidence: Evidence) -> None:
    """Each log has a checkpoint of epochs and an index entry."""
    evidence.replicas[PLACE] = [
        replace(log, epochs={0: 0}, indexes=(ENTRY,)) for log in evidence.replicas[PLACE]
    ]


def keep_a_deleted_file(evidence: Evidence) -> None:
    have_files(evidence)
    evidence.lasting_files.append((1, "/data/t-0/00000000000000000000.log.deleted"))


def point_at_a_later_batch(evidence: Evidence) -> None:
    have_files(evidence)
    wrong = ENTRY | {"offset": 1}
    evidence.replicas[PLACE][0] = replace(evidence.replicas[PLACE][0], indexes=(wrong,))


def forget_an_epoch(evidence: Evidence) -> None:
    have_files(evidence)
    evidence.replicas[PLACE][1] = replace(evidence.replicas[PLACE][1], epochs={})


def begin_epoch_one(evidence: Evidence) -> None:
    """Epoch 0 ends at offset 2, as the leader answers."""
    from tests.simulation.test_checks import state, store

    records = [(n, f"v{n}", int(n >= 2), n) for n in range(4)]
    store(evidence, *records)
    evidence.final[PLACE] = [
        replace(read, leader_epoch=int(read.offset >= 2)) for read in evidence.final[PLACE]
    ]
    evidence.history.reads = [
        replace(read, leader_epoch=int(read.offset >= 2)) for read in evidence.history.reads
    ]
    evidence.changes.append(state(1, 1, [1, 2, 3], 1))
    evidence.history.epoch_ends.append(EpochEnd(1, *PLACE, 0, 2, 50.0))


def answer_a_later_end(evidence: Evidence) -> None:
    begin_epoch_one(evidence)
    evidence.history.epoch_ends.append(EpochEnd(1, *PLACE, 0, 3, 51.0))


def shut_down(evidence: Evidence, leader: int) -> None:
    """Broker 1 shuts down, and this broker leads before the registration ends."""
    path = "/brokers/topics/t/partitions/0/state"
    state = {"leader": leader, "isr": [1, 2, 3], "leader_epoch": 1, "controller_epoch": 1}
    put(evidence, 50.0, path, state)
    put(evidence, 50.1, "/brokers/ids/1", None)
    evidence.stops.append(Stop(1, 49.9, 50.2))
    evidence.disturbances.append(Disturbance(DOWN, ("b1",), 49.9, 51.0))
    evidence.replicas[PLACE] = [
        replace(log, broker=broker)
        for broker, log in zip((leader, 3), evidence.replicas[PLACE], strict=True)
    ]


def hand_over(evidence: Evidence) -> None:
    shut_down(evidence, 2)


def shut_down_as_leader(evidence: Evidence) -> None:
    shut_down(evidence, 1)


def shut_down_beside_a_cut(evidence: Evidence) -> None:
    shut_down(evidence, 1)
    evidence.disturbances.append(Disturbance("cut", ("b1", "b2"), 45.0, 46.0))


DAMAGE: dict[Callable[[Evidence], None], str] = {
    keep_a_deleted_file: "leftover_log",
    point_at_a_later_batch: "index_wrong",
    forget_an_epoch: "epoch_lineage",
    answer_a_later_end: "epoch_lineage",
    shut_down_as_leader: "leadership_not_handed_over",
}
