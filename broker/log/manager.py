"""All logs of a broker (Kafka's `LogManager`): loading, creating, deleting, upkeep, checkpoints."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from urteil.broker.log import checkpoints
from urteil.broker.log.checkpoints import ZERO_UUID, TopicPartition
from urteil.broker.log.config import LogConfig
from urteil.broker.log.flush import FlushJob
from urteil.broker.log.log_directory import LogDirectory
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import Remembered
from urteil.broker.log.storage import Storage

_log = logging.getLogger("urteil.broker.log")

_RETENTION_CHECK_MS = 300_000
_EXPIRATION_CHECK_MS = 600_000


class Clock(Protocol):
    """The wall clock."""

    def now_ms(self) -> int: ...


def _at_once(job: Callable[[], None]) -> None:
    job()


class LogManager:
    """Owns the log directories.

    `background` runs what waits for the disk and touches no state of ours (syncs of rolled
    segments, the checkpoint of high watermarks every few seconds), one after another: pass the
    `submit` of an executor with one thread so that the loop does not wait. Settings of topics
    come by `get_or_create` and `PartitionLog.config`; `load` knows the broker's alone.
    """

    def __init__(
        self,
        dirs: Sequence[str | Path],
        broker_props: Mapping[str, str],
        clock: Clock,
        *,
        storage: Storage | None = None,
        background: Callable[[Callable[[], None]], object] = _at_once,
    ) -> None:
        self._paths = [Path(path) for path in dirs]
        self._props = broker_props
        self._clock = clock
        self._storage = storage or Storage()
        self._background = background
        self._directories: list[LogDirectory] = []
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._watermarks: dict[TopicPartition, int] = {}
        self._doomed: list[tuple[int, Path]] = []
        self._flushes: dict[PartitionLog, FlushJob] = {}
        self._checkpoint_failure: OSError | None = None
        self._retention_due_ms = self._expiration_due_ms = 0

    # Starting and stopping

    def load(
        self,
        cluster_id: str | None = None,
        overrides: Callable[[str], Mapping[str, str]] | None = None,
    ) -> None:
        """Lock the directories and open every log, recovering those of an unclean stop.

        `cluster_id` is compared with `meta.properties`, or written there. `overrides` gives a
        topic's own settings. Raises OSError: locked, unreadable, full,
        or InconsistentMeta.
        """
        now_ms = self._clock.now_ms()
        self._expiration_due_ms = now_ms + self._expiration_period_ms()
        for path in self._paths:
            directory = LogDirectory(self._storage, path)
            self._directories.append(directory)
            directory.check_meta(int(self._props.get("broker.id", "-1")), cluster_id, now_ms)
            self._load_directory(directory, overrides or _no_overrides, now_ms)

    def _load_directory(
        self, directory: LogDirectory, overrides: Callable[[str], Mapping[str, str]], now_ms: int
    ) -> None:
        clean = directory.take_clean_marker()
        recovery = directory.read_offsets(checkpoints.RECOVERY_POINTS)
        starts = directory.read_offsets(checkpoints.LOG_STARTS)
        self._watermarks.update(directory.read_offsets(checkpoints.HIGH_WATERMARKS))
        directory.ensure(checkpoints.CLEANER_OFFSETS)
        for folder in directory.folders_to_delete():
            self._storage.remove_tree(folder)
        for topic, partition, folder in directory.partition_folders():
            key = (topic, partition)
            if key in self._logs:
                raise OSError(f"{folder} and {self._logs[key].directory} are the same partition")
            remembered = Remembered(
                recovery_point=recovery.get(key, 0),
                log_start_offset=starts.get(key, 0),
                high_watermark=self._watermarks.get(key),
                clean=clean,
            )
            config = LogConfig.from_properties(self._props, overrides(topic))
            self._logs[key] = self._open(key, folder, config, remembered, now_ms)
        state = "clean" if clean else "unclean"
        _log.info("%s: %d logs after a %s stop", directory.path, len(self._logs), state)

    def _open(
        self,
        key: TopicPartition,
        folder: Path,
        config: LogConfig,
        remembered: Remembered,
        now_ms: int,
    ) -> PartitionLog:
        try:
            topic_id = checkpoints.read_topic_id(self._storage, folder)
        except checkpoints.DamagedFile as error:
            _log.error("%s: taken as unknown", error)
            topic_id = ZERO_UUID
        return PartitionLog(
            self._storage,
            folder,
            *key,
            topic_id,
            config,
            now_ms,
            remembered,
            on_cut=lambda: self._checkpoint_recovery_points(folder.parent),
        )

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Flush and close all logs, write the checkpoints and the marker of a clean stop.

        A directory whose storage failed gets no marker: it is recovered next time.
        """
        for directory in self._directories:
            logs = self._in_directory(directory.path)
            for log in logs.values():
                log.close()
            try:
                self._checkpoint_recovery_points(directory.path)
                self._checkpoint_log_starts(directory)
                if all(log.failure is None for log in logs.values()):
                    directory.put_clean_marker(broker_epoch)
            except OSError as error:
                _log.error("%s: no clean stop: %s", directory.path, error)
            directory.close()
        self._directories, self._logs = [], {}

    # Logs

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, if there is one."""
        return self._logs.get((topic, partition))

    def logs(self) -> list[PartitionLog]:
        """All logs, in the order of their loading and creation."""
        return list(self._logs.values())

    def failed(self) -> list[PartitionLog]:
        """Logs that take no writes, since the storage failed under one."""
        return [log for log in self._logs.values() if log.failure is not None]

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: uuid.UUID = ZERO_UUID,
        overrides: Mapping[str, str] | None = None,
    ) -> PartitionLog:
        """The log of a partition, made in the directory with the fewest logs if there is none.

        A log without topic id takes on the one given. `overrides` become its settings.
        """
        log = self._logs.get((topic, partition))
        config = LogConfig.from_properties(self._props, overrides)
        if log is None:
            log = self._create(topic, partition, topic_id, config)
        elif overrides is not None:
            log.config = config
        if log.topic_id == ZERO_UUID != topic_id:
            checkpoints.write_topic_id(self._storage, log.directory, topic_id)
            log.topic_id = topic_id
        return log

    def _create(
        self, topic: str, partition: int, topic_id: uuid.UUID, config: LogConfig
    ) -> PartitionLog:
        directory = min(self._directories, key=lambda each: len(self._in_directory(each.path)))
        folder = directory.path / f"{topic}-{partition}"
        self._storage.make_directory(folder)
        if topic_id != ZERO_UUID:
            checkpoints.write_topic_id(self._storage, folder, topic_id)
        key = (topic, partition)
        self._watermarks.pop(key, None)
        log = self._open(key, folder, config, Remembered(clean=True), self._clock.now_ms())
        log.epochs.write()
        self._storage.sync_directory(directory.path)
        self._logs[key] = log
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Rename the log's folder now, remove it after file.delete.delay.ms."""
        log = self._logs.pop((topic, partition), None)
        if log is None:
            return
        parent = log.directory.parent
        folder = log.rename_for_delete()
        due_ms = self._clock.now_ms() + log.config.file_delete_delay_ms
        self._doomed.append((due_ms, folder))
        self._watermarks.pop((topic, partition), None)
        self._flushes.pop(log, None)
        # a topic of the same name must not inherit these
        self._checkpoint_recovery_points(parent)
        self.checkpoint_high_watermarks({})
        for directory in self._directories:
            if directory.path == parent:
                self._checkpoint_log_starts(directory)

    def _in_directory(self, path: Path) -> dict[TopicPartition, PartitionLog]:
        return {key: log for key, log in self._logs.items() if log.directory.parent == path}

    # Checkpoints

    def high_watermark_checkpoint(self, topic: str, partition: int) -> int:
        """The high watermark of the last checkpoint, before or after the start; 0 without one."""
        return self._watermarks.get((topic, partition), 0)

    def note_high_watermark(self, topic: str, partition: int, offset: int) -> None:
        """What the next checkpoint holds of a log that is no longer hosted."""
        self._watermarks[topic, partition] = offset

    def checkpoint_high_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> None:
        """Write `replication-offset-checkpoint` in each directory for the logs that lie there.

        A log that is not among `watermarks` keeps what is known of it: after a start it may not
        have been assigned yet. Written in the background; `tick` raises what went wrong.
        """
        self._watermarks.update(watermarks)
        for directory in self._directories:
            logs = self._in_directory(directory.path)
            rows = {key: offset for key, offset in self._watermarks.items() if key in logs}
            self._background(partial(self._write_high_watermarks, directory, rows))

    def _write_high_watermarks(
        self, directory: LogDirectory, rows: Mapping[TopicPartition, int]
    ) -> None:
        try:
            directory.write_offsets(checkpoints.HIGH_WATERMARKS, rows)
        except OSError as error:
            self._checkpoint_failure = error

    def checkpoint_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint` in each directory."""
        for directory in self._directories:
            self._checkpoint_recovery_points(directory.path)

    def _checkpoint_recovery_points(self, path: Path) -> None:
        points = {key: log.recovery_point for key, log in self._in_directory(path).items()}
        target = path / checkpoints.RECOVERY_POINTS
        checkpoints.write_offsets(self._storage, target, points)

    def checkpoint_log_start_offsets(self) -> None:
        """Write `log-start-offset-checkpoint` in each directory."""
        for directory in self._directories:
            self._checkpoint_log_starts(directory)

    def _checkpoint_log_starts(self, directory: LogDirectory) -> None:
        """Only starts that the files do not tell: those within a segment (as Kafka does)."""
        rows = {
            key: log.log_start_offset
            for key, log in self._in_directory(directory.path).items()
            if log.log_start_offset > log.segments.first_offset
        }
        directory.write_offsets(checkpoints.LOG_STARTS, rows)

    # Upkeep

    def tick(self, now_ms: int) -> None:
        """What is due: syncs of rolled segments, flush.ms, retention, delayed removals.

        Call it about once a second. Raises OSError when a removal or a checkpoint failed.
        """
        if self._checkpoint_failure is not None:
            raise self._checkpoint_failure
        self._finish_flushes()
        for log in self._logs.values():
            self._start_flush(log, now_ms)
        if now_ms >= self._retention_due_ms:
            period_ms = self._number("log.retention.check.interval.ms", _RETENTION_CHECK_MS)
            self._retention_due_ms = now_ms + period_ms
            self._apply_retention(now_ms)
        if now_ms >= self._expiration_due_ms:
            self._expiration_due_ms = now_ms + self._expiration_period_ms()
            for log in self._logs.values():
                log.expire_producers(now_ms)
        self._remove_due(now_ms)

    def _expiration_period_ms(self) -> int:
        return self._number("producer.id.expiration.check.interval.ms", _EXPIRATION_CHECK_MS)

    def _number(self, name: str, default: int) -> int:
        return int(self._props.get(name) or default)

    def _start_flush(self, log: PartitionLog, now_ms: int) -> None:
        if log.failure is not None or log in self._flushes:
            return
        if now_ms - log.flushed_ms >= log.config.flush_ms:
            upto = log.log_end_offset
        elif log.rolled_unflushed:
            upto = log.segments.active.base_offset
        else:
            return
        log.flushed_ms = now_ms
        if upto > log.recovery_point:
            job = self._flushes[log] = log.flush_job(upto)
            self._background(job.run)

    def _finish_flushes(self) -> None:
        for log, job in list(self._flushes.items()):
            if job.done:
                del self._flushes[log]
                log.finish_flush(job)

    def _apply_retention(self, now_ms: int) -> None:
        for log in self._logs.values():
            if log.failure is None and log.apply_retention(now_ms):
                _log.info("%r: old segments go", log)

    def _remove_due(self, now_ms: int) -> None:
        for log in self._logs.values():
            log.remove_deleted(now_ms)
        due: Iterable[Path] = [path for due_ms, path in self._doomed if due_ms <= now_ms]
        for path in due:
            self._storage.remove_tree(path)
        self._doomed = [item for item in self._doomed if item[0] > now_ms]


def _no_overrides(_: str) -> Mapping[str, str]:
    return {}
