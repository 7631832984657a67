"""Recovery of logs after a crash, checkpoints and directories."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import LOG_DIRECTORIES, NOT_FOUND, NOT_FOUND_BY_THREE

DROPPED_BATCHES = 20
BROKER = "2"


@mutant(
    about="a restarted broker forgets the sequences of idempotent producers",
    models="a producer snapshot that recovery does not load",
    scenario="restart-storm",
    guarantee="duplicate",
)
def dedup_state_lost_on_restart(mark: Mark) -> None:
    """Opens a log without the producer state of its batches and snapshots."""

    def make(original: Function) -> Function:
        def run(recovery: Any) -> None:
            original(recovery)
            producers = recovery.loaded.producers
            if producers.entries:
                mark.hit()
                producers.reset(recovery.loaded.log_end_offset)

        return run

    replace("urteil.broker.log.recovery:_Recovery.run", make)


@mutant(
    about="recovery of an unclean log drops its last batches, whose offsets are then used again",
    models="recovery that stops before the last valid batch",
    scenario="restart-storm",
    guarantee="inconsistent_offset",
)
def offset_reused_after_recovery(mark: Mark) -> None:
    """Truncates the last batches of an unclean log before recovery."""

    def make(original: Function) -> Function:
        def run(recovery: Any) -> None:
            if not recovery.checkpointed.clean and len(recovery.loaded.segments):
                cut_tail(recovery.loaded.segments.active_segment)
            original(recovery)

        return run

    def cut_tail(segment: Any) -> None:
        from urteil.broker.log.batch_scan import read_batches

        starts = [batch.position for batch in read_batches(segment.file, 0, segment.size)]
        if len(starts) > DROPPED_BATCHES:
            mark.hit()
            segment.truncate_file(starts[-DROPPED_BATCHES])

    replace("urteil.broker.log.recovery:_Recovery.run", make)


@mutant(
    about="a log that is recovered after a crash forgets where leader epoch 0 began",
    models="KAFKA-10432: LeaderEpochCache is incorrectly recovered for leader epoch 0",
    scenario="power-cut",
    guarantee="epoch_lineage",
    mix="replication",
)
def epoch_zero_not_recovered(mark: Mark) -> None:
    """Treats epoch 0 as no epoch in recovery."""

    def make(original: Function) -> Function:
        def settle_epochs(recovery: Any) -> None:
            original(recovery)
            epochs = recovery.loaded.epochs
            later = [(epoch, start) for epoch, start in epochs.entries if epoch]
            if not recovery.checkpointed.clean and len(later) < len(epochs.entries):
                mark.hit()
                epochs.replace(later)

        return settle_epochs

    replace("urteil.broker.log.recovery:_Recovery._settle_epochs", make)


@mutant(
    about="a restarted broker treats the index of aborted transactions as empty",
    models="an index that exists in memory only",
    scenario="transactions-restart",
    guarantee="aborted_read",
    mix="transactions",
)
def aborted_index_lost_on_restart(mark: Mark) -> None:
    """Skips the entries of the transaction index when a log is loaded."""

    def make(original: Function) -> Function:
        def load(index: Any) -> Any:
            if original(index):
                mark.hit()
            return []

        return load

    replace("urteil.broker.log.txn_index:TxnIndex._load", make)


@mutant(
    about="every entry of the offset index is one offset too low",
    models="an index written by next offset and read by last offset",
    scenario="indexes",
    guarantee="index_wrong",
    mix="replication",
)
def index_off_by_one(mark: Mark) -> None:
    """Subtracts one from each offset that is added to the index."""

    def make(original: Function) -> Function:
        def append(index: Any, offset: int, position: int) -> None:
            if offset > index.base_offset:
                mark.hit()
                offset -= 1
            original(index, offset, position)

        return append

    replace("urteil.broker.log.indexes:OffsetIndex.append", make)


@mutant(
    about="a replica that moved to another log directory forgets its producers' sequences",
    models="KIP-113: a copied log without the producer state",
    scenario="move-directories",
    guarantee="sequence_gap",
    unsimulated=LOG_DIRECTORIES,
)
def moved_log_lacks_producers(mark: Mark) -> None:
    """Starts the copy of a log without producer state."""

    def make(original: Function) -> Function:
        def promote(logs: Any, topic: str, partition: int) -> Any:
            log = original(logs, topic, partition)
            if log.producers.entries:
                mark.hit()
                log.producers.entries.clear()
            return log

        return promote

    replace("urteil.broker.log.log_manager:LogManager.promote_future", make)


@mutant(
    about="recovery after a crash checks batch headers only",
    models="a recovery without checksums",
    scenario="segment-damaged",
    guarantee="corrupt",
    unsimulated="no fault damages closed segments",
)
def recovered_without_crc(mark: Mark) -> None:
    """Accepts every CRC in recovery."""

    def make(original: Function) -> Function:
        def is_crc_valid(data: Any) -> bool:
            if not original(data):
                mark.hit()
            return True

        return is_crc_valid

    replace("urteil.broker.log.recovery:is_crc_valid", make)


@mutant(
    about="flush.ms is ignored: logs are flushed only when they roll",
    models="a forgotten flush task",
    scenario="power-cut-all",
    guarantee="lost_write",
    unsimulated="no setting flushes by time",
)
def flush_ms_ignored(mark: Mark) -> None:
    """Reports no log as due for a flush."""

    def make(original: Function) -> Function:
        def start_flush(duties: Any, log: Any, now_ms: int) -> None:
            if now_ms - log.flushed_ms >= log.config.flush_ms:
                mark.hit()
                log.flushed_ms = now_ms
            original(duties, log, now_ms)

        return start_flush

    replace("urteil.broker.log.maintenance:Maintenance._start_flush", make)


@mutant(
    about="a flush moves the recovery point and syncs nothing",
    models="a sync that was lost in a refactoring",
    scenario="power-cut-all",
    guarantee="lost_write",
    unsimulated="machines lose power one at a time, and the other replicas have the records",
)
def flush_without_sync(mark: Mark) -> None:
    """Syncs no file of a log."""

    def make(_original: Function) -> Function:
        def sync(_job: Any, _path: Any) -> None:
            mark.hit()

        return sync

    replace("urteil.broker.log.flush_job:FlushJob._sync", make)


@mutant(
    about="a flush syncs the files of a log, and not their directory",
    models="KAFKA-3968: the parent directory of a new segment is not flushed",
    scenario="power-cut-segments",
    guarantee="lost_write",
    unsimulated="disks keep the entries of directories",
)
def directory_not_synced(mark: Mark) -> None:
    """Leaves out the sync of the directory."""

    def make(_original: Function) -> Function:
        def run(job: Any) -> None:
            mark.hit()
            for path in job._files:
                job._sync(path)
            job.done = True

        return run

    replace("urteil.broker.log.flush_job:FlushJob.run", make)


@mutant(
    about="a restarted broker does not read log-start-offset-checkpoint",
    models="a checkpoint that is read under another name",
    scenario="deleted-once",
    guarantee="undeleted_records",
    unsimulated=NOT_FOUND_BY_THREE,
)
def log_start_checkpoint_ignored(mark: Mark) -> None:
    """Loads an empty log-start-offset-checkpoint."""

    def make(original: Function) -> Function:
        def read_offsets(directory: Any, name: str) -> Any:
            result = original(directory, name)
            if name == "log-start-offset-checkpoint" and result:
                mark.hit()
                return {}
            return result

        return read_offsets

    replace("urteil.broker.log.log_directory:LogDirectory.read_offsets", make)


@mutant(
    about="directories of deleted logs are renamed and never removed",
    models="a delayed removal that is forgotten",
    scenario="recreate-topic",
    guarantee="leftover_log",
    mix="administration",
)
def deleted_logs_not_removed(mark: Mark) -> None:
    """Removes nothing from the list of due deletions."""

    def make(original: Function) -> Function:
        def remove_due(duties: Any, now_ms: int) -> None:
            if any(due_ms <= now_ms for due_ms, _ in duties._removals):
                mark.hit()

        return remove_due

    replace("urteil.broker.log.maintenance:Maintenance._remove_due", make)


@mutant(
    about="one broker ignores a change of retention.ms",
    models="a broker with stale settings",
    scenario="retention-changed",
    guarantee="kept_too_long",
    mix="retention",
)
def retention_change_ignored(mark: Mark) -> None:
    """Keeps the retention of a log when its settings change."""

    def make(original: Function) -> Function:
        def configure(manager: Any, overrides: Any, topic: str | None = None) -> None:
            before = {log: log.config.retention_ms for log in manager._logs.values()}
            original(manager, overrides, topic)
            for log, kept in before.items():
                if manager._props["broker.id"] == BROKER and log.config.retention_ms != kept:
                    mark.hit()
                    log.config = changed(log.config, retention_ms=kept)

        return configure

    replace("urteil.broker.log.log_manager:LogManager.configure", make)


@mutant(
    about="the leader epoch cache keeps entries of records that were truncated",
    models="KIP-101: epochs that are not truncated",
    scenario="fast-failover",
    guarantee="slow_recovery",
)
def epoch_cache_not_truncated(mark: Mark) -> None:
    """Keeps the epoch cache entries of truncated records."""

    def truncate_from_end(epochs: Any, end_offset: int) -> None:
        if epochs._starts and epochs._starts[-1] >= end_offset:
            mark.hit()

    def put(epochs: Any, epoch: int, start_offset: int) -> bool:
        if epoch in epochs._epochs:
            return False
        epochs._epochs.append(epoch)
        epochs._starts.append(start_offset)
        return True

    where = "urteil.broker.log.epoch_cache:EpochCache"
    replace(f"{where}.truncate_from_end", lambda _: truncate_from_end)
    replace(f"{where}._put", lambda _: put)


@mutant(
    about="high watermarks are lost in a restart",
    models="a checkpoint written before there is anything to write",
    scenario="indexes",
    guarantee="replica_divergence",
    unsimulated=NOT_FOUND,
)
def watermark_checkpoint_zero(mark: Mark) -> None:
    """Writes 0 for every log into replication-offset-checkpoint."""

    def make(original: Function) -> Function:
        def checkpoint(logs: Any, watermarks: Any) -> Any:
            if any(watermarks.values()):
                mark.hit()
            return original(logs, dict.fromkeys(watermarks, 0))

        return checkpoint

    replace("urteil.broker.log.log_manager:LogManager.checkpoint_high_watermarks", make)


@mutant(
    about="a log whose last batch is torn ends the broker that recovers it",
    models="a recovery that fails after a power cut",
    scenario="power-cut",
    guarantee="unexpected_exit",
    mix="transactions",
)
def torn_tail_is_fatal(mark: Mark) -> None:
    """Raises an error for a torn last batch in place of truncating it."""

    def make(original: Function) -> Function:
        def report_loss(recovery: Any, segment: Any, position: int, offset: int) -> None:
            mark.hit()
            raise ValueError(f"{segment}: damaged at byte {position}")

        return report_loss

    replace("urteil.broker.log.recovery:_Recovery._log_loss", make)
