"""Two replicas of a partition as bare logs on simulated disks: elections, kills, power cuts, cuts.

Nothing waits and nobody is asked: whoever is elected leads, in sync or not, and a follower does
what `FollowedPartition` does with a leader's answers. After every step the state that a log keeps
of its batches is compared with the batches.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.broker.log.helpers import FixedClock, batch, marker
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.producer_states import read_marker
from urteil.broker.replication.overlapping_append import append_overlapping
from urteil.broker.replication.truncation import truncation_point
from urteil.broker.wire.batches import BatchHeader, iter_batches
from urteil.broker.wire.errors import ErrorCode
from urteil.suites.simulation.storage import Disk, DiskStorage

KEY = ("t", 0)
PLAIN, TRANSACTIONAL = (11, 12, 13), (20, 21, 22)
Batches = dict[int, tuple[BatchHeader, bytes]]


class Replica:
    """One machine; its background jobs are run when the play says so."""

    def __init__(self, name: str, clock: FixedClock, props: dict[str, str], seed: int) -> None:
        self._clock = clock
        self._props = props
        self._rng = random.Random(seed)
        self._disk = Disk(name, lambda *_: None, clock.now_ms)
        self.open()

    def open(self) -> None:
        self._storage: Any = DiskStorage(self._disk)
        self.jobs: list[Callable[[], None]] = []
        self.logs = LogManager(
            ["/d"],
            self._props,
            self._clock,
            storage=self._storage,
            background=self.jobs.append,
        )
        self.logs.load("c")
        self.log = self.logs.get_or_create(*KEY)
        self.log.update_high_watermark(self.logs.high_watermark_checkpoint(*KEY))

    def run_jobs(self, count: int) -> None:
        for _ in range(min(count, len(self.jobs))):
            self.jobs.pop(0)()

    def kill(self, *, power: bool) -> None:
        self._storage.is_alive = False
        self._disk.locks.clear()
        if power:
            self._disk.lose_power(self._rng)
        self.open()

    def restart(self) -> None:
        """A clean stop, and a start."""
        self.logs.checkpoint_high_watermarks({KEY: self.log.high_watermark})
        self.run_jobs(len(self.jobs))
        self.logs.shutdown()
        self._storage.is_alive = False
        self.open()


def batches(log: PartitionLog) -> Batches:
    """All of them by base offset, read as a consumer does."""
    batches: Batches = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 1 << 20, upto=log.log_end_offset)
        assert result.error is ErrorCode.NONE
        data = memoryview(b"".join(result.records))
        batches |= {
            head.base_offset: (head, bytes(batch_data)) for head, batch_data in iter_batches(data)
        }
        assert result.next_offset > offset, f"{log!r}: nothing to read at {offset}"
        offset = result.next_offset
    return batches


def check(log: PartitionLog) -> Batches:
    """Indexes, epochs, producers and aborted transactions are those of the batches."""
    assert log.failure is None
    stored = batches(log)
    aborted: list[tuple[int, int, int]] = []  # producer, first offset, marker
    open_at: dict[int, int] = {}
    last: dict[int, BatchHeader] = {}  # by producer
    for base, (head, data) in stored.items():
        for offset in {max(base, log.log_start_offset), head.last_offset}:
            read = log.read(offset, 1, upto=log.log_end_offset)
            first, _ = next(iter_batches(memoryview(b"".join(read.records))))
            assert first.base_offset == base
        at = max(base, log.log_start_offset)
        assert log.epochs.epoch_at(at) == head.partition_leader_epoch
        if head.is_control:
            end = read_marker(data)
            assert end is not None
            begin = open_at.pop(head.producer_id, None)
            if begin is not None and not end.commit:
                aborted.append((head.producer_id, begin, base))
        elif head.is_transactional:
            open_at.setdefault(head.producer_id, base)
        if head.producer_id >= 0 and not head.is_control:
            last[head.producer_id] = head
    for producer_id, head in last.items():
        entry = log.producers.entries[producer_id]
        assert entry.epoch > head.producer_epoch or entry.last_sequence == head.last_sequence
    for producer_id, offset in open_at.items():
        first_offset = log.producers.entries[producer_id].txn_first_offset
        assert first_offset is not None
        assert first_offset == offset or first_offset < min(stored)
    for base, (head, _) in stored.items():
        overlapping = log.aborted_transactions(base, head.last_offset + 1)
        known = {(txn.producer_id, txn.last_offset) for txn in overlapping}
        for producer_id, begin, end_offset in aborted:
            if begin <= head.last_offset and end_offset >= base:
                assert (producer_id, end_offset) in known
    return stored


def producers(log: PartitionLog) -> dict[int, tuple[int, int, int | None]]:
    """What a snapshot keeps of them; nothing of an empty log."""
    if log.log_start_offset == log.log_end_offset:
        return {}
    return {
        entry.producer_id: (entry.epoch, entry.last_sequence, entry.txn_first_offset)
        for entry in log.producers.entries.values()
    }


class Play:
    """One seed's: `step` does something, `end` lets the follower catch up."""

    def __init__(self, seed: int) -> None:
        self._rng = rng = random.Random(seed)
        self._clock = FixedClock()
        props = {
            "broker.id": "1",
            "log.segment.bytes": rng.choice(["300", "600", "1500"]),
            "log.index.interval.bytes": rng.choice(["0", "100", "400"]),
            "log.index.size.max.bytes": rng.choice(["40", "64", "10485760"]),
            "log.preallocate": rng.choice(["true", "false", "false"]),
            "log.retention.bytes": rng.choice(["-1", "-1", "3000"]),
            "log.retention.ms": "-1",
            "log.segment.delete.delay.ms": "1000",
            "log.initial.task.delay.ms": "1",
            "log.retention.check.interval.ms": "1000",
        }
        self.replicas = [Replica(f"r{n}", self._clock, props, seed * 2 + n) for n in range(2)]
        self._leads, self._epoch = 0, -1
        self._sequences: dict[int, int] = {}
        self._acts: list[tuple[Callable[[Replica], None], int]] = [
            (self._send, 30), (self._send_in_transaction, 20), (self._end_transaction, 10),
            (self._fetch, 25), (self._commit, 15), (self._delete_records, 3),
            (self._kill, 3), (self._cut_power, 3), (self._restart, 3), (self._elect, 5),
            (self._tick, 12), (lambda pair: pair.run_jobs(rng.choice([1, 2, 99])), 15),
            (lambda pair: pair.log.roll(self._clock.now_ms()), 4),
            (lambda pair: pair.log.flush(), 3), (self._checkpoint, 5),
        ]  # fmt: skip
        self._begin_epoch()

    @property
    def _leader(self) -> PartitionLog:
        return self.replicas[self._leads].log

    def _begin_epoch(self) -> None:
        """Producers go on as the new leader knows them, or as they would if it knows them not."""
        self._epoch += 1
        self._leader.assign_epoch_start(self._epoch, self._leader.log_end_offset)
        self._sequences |= {
            producer_id: entry.last_sequence + 1
            for producer_id, entry in self._leader.producers.entries.items()
        }

    def step(self) -> None:
        self._clock.time_ms += self._rng.choice([0, 1, 50, 700])
        acts, weights = zip(*self._acts, strict=True)
        self._rng.choices(acts, weights)[0](self._rng.choice(self.replicas))
        for replica in self.replicas:
            check(replica.log)

    def end(self) -> None:
        for _ in range(400):
            self._follow()
        start = max(replica.log.log_start_offset for replica in self.replicas)
        ends = [
            {base: data for base, (head, data) in check(replica.log).items() if base >= start}
            for replica in self.replicas
        ]
        assert ends[0] == ends[1]

    # -- the leader's part ----------------------------------------------------------------------

    def _append(self, producer_id: int, *, transactional: bool = False) -> None:
        values = [b"v"] * self._rng.randint(1, 3)
        entry = self._leader.producers.entries.get(producer_id)
        sequence = self._sequences.get(producer_id, 0)
        sent = batch(
            values,
            timestamp_ms=self._clock.now_ms(),
            producer=(producer_id, entry.epoch if entry else 0, sequence),
            transactional=transactional,
        )
        result = self._leader.append_as_leader(sent, self._epoch, self._clock.now_ms())
        assert result.error is ErrorCode.NONE
        assert not result.duplicate
        self._sequences[producer_id] = sequence + len(values)

    def _send(self, _: Replica) -> None:
        self._append(self._rng.choice(PLAIN))

    def _send_in_transaction(self, _: Replica) -> None:
        self._append(self._rng.choice(TRANSACTIONAL), transactional=True)

    def _end_transaction(self, _: Replica) -> None:
        known = self._leader.producers
        for producer_id in TRANSACTIONAL:
            if known.is_open(producer_id):
                end = marker(
                    producer_id, known.entries[producer_id].epoch, commit=self._rng.random() < 0.5
                )
                self._leader.append_as_leader(
                    end, self._epoch, self._clock.now_ms(), from_client=False
                )
                return

    def _commit(self, _: Replica) -> None:
        end = min(replica.log.log_end_offset for replica in self.replicas)
        self._leader.update_high_watermark(max(self._leader.high_watermark, end))

    def _delete_records(self, _: Replica) -> None:
        begin = self._rng.randint(self._leader.log_start_offset, self._leader.high_watermark)
        self._leader.increment_log_start_offset(begin)

    # -- the follower's part --------------------------------------------------------------------

    def _fetch(self, _: Replica) -> None:
        for _ in range(self._rng.randint(1, 4)):
            self._follow()

    def _follow(self) -> None:
        """One fetch, and what comes of it."""
        leader, follower = self._leader, self.replicas[1 - self._leads].log
        last, offset = follower.latest_epoch, follower.log_end_offset
        in_range = leader.log_start_offset <= offset <= leader.log_end_offset
        if last >= 0:
            epoch, end = leader.epoch_end_offset(last)
            known = min(epoch, end) >= 0 and offset >= leader.log_start_offset
            if known and (epoch < last or end < offset):
                follower.truncate_to(truncation_point(follower, epoch, end))
                return
            in_range = in_range and known
        if not in_range:
            if leader.log_end_offset < offset:
                follower.truncate_to(leader.log_end_offset)
            elif leader.log_start_offset > offset:
                follower.truncate_fully_and_start_at(leader.log_start_offset)
            return
        limit = self._rng.choice([100, 500, 5000])
        records = leader.read(offset, limit, upto=leader.log_end_offset).records
        if records:
            data = memoryview(b"".join(records))
            result = append_overlapping(follower, data, self._clock.now_ms())
            assert result.error is ErrorCode.NONE or follower.log_end_offset < offset
        committed = min(leader.high_watermark, follower.log_end_offset)
        follower.update_high_watermark(max(follower.high_watermark, committed))
        if leader.log_start_offset <= follower.high_watermark:
            follower.increment_log_start_offset(leader.log_start_offset)

    # -- what happens to either -----------------------------------------------------------------

    def _kill(self, replica: Replica) -> None:
        before, end = batches(replica.log), replica.log.log_end_offset
        replica.kill(power=False)
        after = batches(replica.log)
        assert replica.log.log_end_offset == end
        assert {base: after[base] for base in before} == before
        self._is_back(replica)

    def _cut_power(self, replica: Replica) -> None:
        durable, begin = replica.log.recovery_point, replica.log.segments.first_offset
        replica.kill(power=True)
        assert replica.log.log_end_offset >= durable or durable <= begin
        self._is_back(replica)

    def _restart(self, replica: Replica) -> None:
        log = replica.log
        bounds, before = (log.log_start_offset, log.log_end_offset), (batches(log), producers(log))
        replica.restart()
        log = replica.log
        assert (log.log_start_offset, log.log_end_offset) == bounds
        assert (batches(log), producers(log)) == before
        self._is_back(replica)

    def _is_back(self, replica: Replica) -> None:
        if replica.log is self._leader:
            self._begin_epoch()

    def _elect(self, _: Replica) -> None:
        self._leads = 1 - self._leads
        self._begin_epoch()

    def _tick(self, replica: Replica) -> None:
        replica.logs.tick(self._clock.now_ms())

    def _checkpoint(self, replica: Replica) -> None:
        logs, watermark = replica.logs, replica.log.high_watermark
        self._rng.choice(
            [
                logs.checkpoint_recovery_points,
                logs.checkpoint_log_start_offsets,
                lambda: logs.checkpoint_high_watermarks({KEY: watermark}),
            ]
        )()
