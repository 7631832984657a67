"""Answers about leader epochs, compared with the final logs."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.broker.wire.batches import parse_header
from urteil.suites.simulation.evidence import Evidence, Place, final_leaders


def epoch_lineage(evidence: Evidence) -> Iterator[str]:
    """After the recovery a leader epoch ends where the first record of a later epoch is. Epochs
    after the last record are not judged, nor topics of which records are deleted or cleaned."""
    if evidence.promises.configs:
        return
    led = final_leaders(evidence)
    batches: dict[Place, list[tuple[int, int]]] = {
        place: [
            (base, parse_header(batch).partition_leader_epoch) for base, batch in replica.batches
        ]
        for place, replicas in evidence.replicas.items()
        for replica in replicas
        if replica.broker == led.get(place)
    }
    for answer in evidence.history.epoch_ends:
        place = answer.topic, answer.partition
        later = [base for base, epoch in batches.get(place, ()) if epoch > answer.epoch]
        if later and answer.end != later[0]:
            yield (
                f"{answer.topic}-{answer.partition}: broker {answer.broker} answered that epoch "
                f"{answer.epoch} ends at {answer.end}, and the first record of a later epoch is at "
                f"{later[0]}"
            )
