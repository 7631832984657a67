"""Epochs that an unclean election removed completely, and the offsets where they began.

The final leader's log does not contain such an epoch: its leader had a shorter log than the replica
from outside the ISR that was elected after it. All its records are lost, from its own first offset
on, which is below the start of the epoch that replaced it. Acknowledgements and reads of the epoch
show that offset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from urteil.harness.verify import evidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.limits import CLOCK_SLACK_NS

_ROWS = 65536
_COLUMNS = {
    "sends": ("topic_id", "partition", "offset", "node", "complete_ns"),
    "reads": ("topic_id", "partition", "offset", "leader_epoch"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LostEpoch:
    """A leader epoch, its leader, and its begin and end by ZooKeeper's clock."""

    epoch: int
    leader: int
    begin_ns: int
    end_ns: int


def lost_epochs(spans: Iterable[Span], final_epochs: Collection[int]) -> list[LostEpoch]:
    """The epochs with a leader that are not among `final_epochs`, those of the final log, and that
    an unclean epoch or another lost epoch followed."""
    epochs: dict[int, LostEpoch] = {}
    for span in spans:
        before = span.previous if span.begins_epoch and span.unclean else None
        end_ns = span.begin_ns
        while before is not None and before.leader_epoch not in final_epochs:
            if before.begins_epoch:
                if before.leader >= 0:
                    epochs[before.leader_epoch] = LostEpoch(
                        epoch=before.leader_epoch, leader=before.leader,
                        begin_ns=before.begin_ns, end_ns=end_ns,
                    )  # fmt: skip
                end_ns = before.begin_ns
            before = before.previous
    return list(epochs.values())


def first_offsets(
    run_dir: Path, topic_id: str, partition: int, lost: list[LostEpoch]
) -> dict[int, int]:
    """The lowest offset of a send or read of each epoch; none for an epoch without records.

    Reads the tables in batches, and only if an epoch is lost.
    """
    offsets: dict[int, int] = {}
    for table in _COLUMNS if lost else ():
        for batch in _batches(run_dir, table, topic_id, partition):
            for epoch in lost:
                low = pc.min(batch.filter(_is_of_epoch(epoch, batch, table))["offset"]).as_py()
                if low is not None:
                    offsets[epoch.epoch] = min(low, offsets.get(epoch.epoch, low))
    return offsets


def _batches(run_dir: Path, table: str, topic_id: str, partition: int) -> Iterator[pa.RecordBatch]:
    columns = list(_COLUMNS[table])
    for part in evidence.files(run_dir, table):
        for batch in evidence.batches(part, columns, _ROWS):
            here = pc.equal(batch["topic_id"].cast(pa.string()), topic_id)
            yield batch.filter(pc.and_(here, pc.equal(batch["partition"], partition)))


def _is_of_epoch(epoch: LostEpoch, batch: pa.RecordBatch, table: str) -> pa.Array:
    """Whether each row is of that epoch: by the epoch of the read, or by time and leader of the
    acknowledgement."""
    if table == "reads":
        return pc.equal(batch["leader_epoch"], epoch.epoch)
    times, nodes = batch["complete_ns"], batch["node"]
    after = pc.greater_equal(times, epoch.begin_ns - CLOCK_SLACK_NS)
    during = pc.and_(after, pc.less_equal(times, epoch.end_ns + CLOCK_SLACK_NS))
    return pc.and_kleene(during, pc.or_kleene(pc.is_null(nodes), pc.equal(nodes, epoch.leader)))
