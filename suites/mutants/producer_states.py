"""Producer ids, epochs and sequences, and their snapshots."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import UNREACHED


@mutant(
    about="only the last batch of a producer is recognised as a duplicate, though five may "
    "be in flight",
    models="Redpanda #3077",
    scenario="repeated-batches",
    guarantee="duplicate",
)
def dedup_window_of_one(mark: Mark) -> None:
    """Removes all batches of a producer but the newest from its state."""

    def make(original: Function) -> Function:
        def add(producer: Any, header: Any, base_offset: int) -> None:
            original(producer, header, base_offset)
            if len(producer.batches) > 1:
                mark.hit()
                del producer.batches[:-1]

        return add

    replace("urteil.broker.log.producer_states:ProducerEntry.add", make)


@mutant(
    about="a batch that begins as a remembered one is taken for it, though it goes on longer",
    models="a comparison of first sequences alone",
    scenario="repeated-batches",
    guarantee="lost_write",
)
def duplicate_by_first_sequence(mark: Mark) -> None:
    """Ignores the last sequence of a batch."""

    def make(original: Function) -> Function:
        def duplicate_of(entry: Any, header: Any) -> Any:
            found = original(entry, header)
            if found is None and header.producer_epoch == entry.epoch:
                same = [b for b in entry.batches if b.first_sequence == header.base_sequence]
                if same:
                    mark.hit()
                    return same[-1]
            return found

        return duplicate_of

    replace("urteil.broker.log.producer_states:ProducerEntry.duplicate_of", make)


@mutant(
    about="a batch is appended although the batch before it was rejected",
    models="KIP-98: sequences of idempotent producers not checked",
    scenario="repeated-batches",
    guarantee="sequence_gap",
)
def out_of_order_sequence_accepted(mark: Mark) -> None:
    """Accepts any sequence as the next one."""

    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            if not original(entry, header):
                mark.hit()
            return True

        return follows

    replace("urteil.broker.log.producer_states:_is_next_sequence", make)


@mutant(
    about="a producer without transactions expires at the next check of old producers",
    models="KAFKA-9144: early expiration of producer state by marker time",
    scenario="repeated-batches",
    guarantee="duplicate",
)
def producer_expired_by_marker_time(mark: Mark) -> None:
    """Uses the time of a producer's last marker as its age."""

    def make(_: Function) -> Function:
        def is_expired(entry: Any, now_ms: int, expiration_ms: int) -> bool:
            if entry.txn_first_offset is None and entry.batches:
                mark.hit()
            return entry.txn_first_offset is None

        return is_expired

    replace("urteil.broker.log.producer_states:is_expired", make)


@mutant(
    about="a producer snapshot lacks the newest batch of each producer",
    models="a snapshot taken before the last append",
    scenario="unanswered-restart",
    guarantee="duplicate",
    unsimulated="no partition has a single replica",
)
def snapshot_lacks_last_batch(mark: Mark) -> None:
    """Omits the newest batch of each producer that has several."""

    def make(original: Function) -> Function:
        def encode(producers: Any) -> bytes:
            older = [entry.copy() for entry in producers]
            for entry in older:
                if len(entry.batches) > 1:
                    mark.hit()
                    del entry.batches[-1]
            data: bytes = original(older)
            return data

        return encode

    replace("urteil.broker.log.producer_snapshots:encode", make)


@mutant(
    about="a batch with sequence 0 after the highest sequence is rejected as out of order",
    models="KIP-98: sequence numbers that do not wrap",
    scenario="repeated-batches",
    guarantee="sequence_gap",
    unsimulated="no producer reaches the highest sequence",
)
def sequence_does_not_wrap(mark: Mark) -> None:
    """Accepts only the next higher number as the next sequence."""

    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            goes_on = entry.epoch == header.producer_epoch and entry.last_sequence > 0
            if goes_on and header.base_sequence == 0:
                mark.hit()
                return False
            result: bool = original(entry, header)
            return result

        return follows

    replace("urteil.broker.log.producer_states:_is_next_sequence", make)


@mutant(
    about="a duplicate batch is answered with the offset of its producer's newest batch",
    models="one remembered offset for each producer",
    scenario="repeated-batches",
    guarantee="misplaced_ack",
)
def duplicate_offset_of_newest(mark: Mark) -> None:
    """Returns the producer's newest remembered batch for each duplicate."""

    def make(original: Function) -> Function:
        def find_duplicate(producers: Any, header: Any) -> Any:
            result = original(producers, header)
            if result is None:
                return None
            newest = producers.entries[header.producer_id].batches[-1]
            if newest is not result:
                mark.hit()
            return newest

        return find_duplicate

    replace("urteil.broker.log.producer_states:ProducerStates.find_duplicate", make)


@mutant(
    about="a log appends batches of a fenced producer epoch",
    models="producer epochs that only the coordinator checks",
    scenario="transactional-paused",
    guarantee="zombie_write",
    unsimulated=UNREACHED,
)
def old_producer_epoch_appended(mark: Mark) -> None:
    """Counts every producer epoch as the current one in an append."""

    def make(original: Function) -> Function:
        def add(staged: Any, header: Any, base_offset: int, data: Any) -> Any:
            entry = staged._entry(header.producer_id)
            if header.producer_epoch < entry.epoch and not header.is_control:
                mark.hit()
                entry.enter_epoch(header.producer_epoch)
            return original(staged, header, base_offset, data)

        return add

    replace("urteil.broker.log.producer_states:StagedBatches.add", make)


@mutant(
    about="a log appends markers of an older producer epoch",
    models="a zombie's marker that ends its successor's transaction",
    scenario="transactional-paused",
    guarantee="torn_txn",
    unsimulated=UNREACHED,
)
def old_producer_epoch_marker(mark: Mark) -> None:
    """Counts every producer epoch as the current one in a marker."""

    def make(original: Function) -> Function:
        def add(staged: Any, header: Any, base_offset: int, data: Any) -> Any:
            entry = staged._entry(header.producer_id)
            if header.producer_epoch < entry.epoch and header.is_control:
                mark.hit()
                entry.enter_epoch(header.producer_epoch)
            return original(staged, header, base_offset, data)

        return add

    replace("urteil.broker.log.producer_states:StagedBatches.add", make)


@mutant(
    about="a marker is written whatever the epoch of its coordinator",
    models="KIP-98: zombie coordinators that are not fenced",
    scenario="transactional-paused",
    guarantee="torn_txn",
    unsimulated=UNREACHED,
)
def marker_coordinator_epoch_unchecked(mark: Mark) -> None:
    """Skips the comparison of coordinator epochs."""
    from urteil.broker.log.producer_states import read_marker

    def make(original: Function) -> Function:
        def add_marker(staged: Any, entry: Any, header: Any, base_offset: int, data: Any) -> Any:
            marker = read_marker(data)
            if marker is not None and marker.coordinator_epoch < entry.coordinator_epoch:
                mark.hit()
                entry.coordinator_epoch = marker.coordinator_epoch
            return original(staged, entry, header, base_offset, data)

        return add_marker

    replace("urteil.broker.log.producer_states:StagedBatches._add_marker", make)


@mutant(
    about="the producer snapshot at a segment roll is empty",
    models="producer state that is lost when a log rolls",
    scenario="restart-storm",
    guarantee="duplicate",
    unsimulated="no producer is idle while segments roll",
)
def empty_producer_snapshots(mark: Mark) -> None:
    """Writes empty snapshots at a roll."""

    def make(original: Function) -> Function:
        def write(snapshots: Any, offset: int, entries: Any, *, sync: bool) -> None:
            if not sync:
                mark.hit()
                entries = ()
            original(snapshots, offset, entries, sync=sync)

        return write

    replace("urteil.broker.log.producer_snapshots:ProducerSnapshots.write", make)


@mutant(
    about="the first batch of a producer's new epoch may have any sequence",
    models="KIP-360: ProducerAppendInfo.checkSequence without the case of a new epoch",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def first_sequence_unchecked(mark: Mark) -> None:
    """Accepts any first sequence of a newer producer epoch."""

    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            if original(entry, header):
                return True
            if header.producer_epoch == entry.epoch:
                return False
            mark.hit()
            return True

        return follows

    replace("urteil.broker.log.producer_states:_is_next_sequence", make)
