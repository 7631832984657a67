"""All logs of a broker (Kafka's `LogManager`): loading, creating, moving, deleting, checkpoints."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from urteil.broker.log import checkpoints
from urteil.broker.log.checkpoints import ZERO_UUID, TopicPartition
from urteil.broker.log.directory_loading import (
    ConfigOf,
    LogOpener,
    choose_newer_copy,
    topic_config_reader,
)
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.log_directory import (
    LogDirectory,
    MisplacedDirectory,
    deleted_folder_name,
    future_folder_name,
)
from urteil.broker.log.maintenance import Maintenance
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.log.storage import LockedFile, Storage

_log = logging.getLogger("urteil.broker.log")


class Clock(Protocol):
    """The wall clock."""

    def now_ms(self) -> int: ...


def _run_now(job: Callable[[], None]) -> None:
    job()


def _ignore() -> None:
    pass


class OfflineLog(OSError):
    """The log may lie in an offline directory, so a new one must not be created elsewhere."""


class LogManager:
    """Owns the log directories and their logs.

    `background` runs jobs that wait for the disk and share no state with the logs (flushes of
    rolled segments, checkpoints), one after another: pass the `submit` of a single-threaded
    executor, so that the event loop does not wait.

    A storage failure of a directory is permanent: its logs reject all writes, `on_failure` is
    called (within the failing write, on any thread) and `failed_directories` contains it until
    `take_offline`.
    """

    def __init__(
        self,
        dirs: Sequence[str | Path],
        broker_props: Mapping[str, str],
        clock: Clock,
        *,
        storage: Storage | None = None,
        background: Callable[[Callable[[], None]], object] = _run_now,
    ) -> None:
        self.paths = [Path(path).absolute() for path in dirs]
        self.offline: dict[Path, OSError] = {}
        self.storage = storage or Storage()
        self._props = broker_props
        self._clock = clock
        self._background = background
        self.on_failure: Callable[[], None] = _ignore
        self._directories: list[LogDirectory] = []
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._futures: dict[TopicPartition, PartitionLog] = {}
        self._preferred: dict[TopicPartition, Path] = {}
        self._watermarks: dict[TopicPartition, int] = {}
        self._maintenance = Maintenance(self.storage, broker_props, background)

    # Starting and stopping

    def load(
        self,
        cluster_id: str | None = None,
        overrides: Callable[[str], Mapping[str, str]] | None = None,
    ) -> None:
        """Lock the directories and open every log; recover them after an unclean stop.

        `cluster_id` is compared with `meta.properties`, or written there. `overrides` returns a
        topic's own settings. A directory that is unreadable, full or damaged goes `offline`.
        Raises OSError when no directory is left; LockedFile and MisplacedDirectory, which are no
        disk failures, always.
        """
        now_ms = self._clock.now_ms()
        self._maintenance.start(now_ms)
        config_of = topic_config_reader(self._props, overrides)
        for path in self.paths:
            try:
                self._load_directory(path, cluster_id, config_of, now_ms)
            except (MisplacedDirectory, LockedFile):
                raise
            except OSError as error:
                self.offline[path] = error
                if len(self.offline) == len(self.paths):
                    raise
                _log.error("%s: offline, its partitions are not served: %s", path, error)

    def _load_directory(
        self, path: Path, cluster_id: str | None, config_of: ConfigOf, now_ms: int
    ) -> None:
        directory = LogDirectory(self.storage, path, lambda: self.on_failure())
        try:
            directory.check_meta(int(self._props.get("broker.id", "-1")), cluster_id, now_ms)
            loaded = self._opener(directory, now_ms).load(config_of)
        except OSError:
            directory.close()
            raise
        self._directories.append(directory)
        for key, log in loaded.logs.items():
            directory.logs[key] = log
            self._add_log(key, log)
            if key in loaded.watermarks:
                self._watermarks[key] = loaded.watermarks[key]
        for key, log in loaded.futures.items():
            if key in self._futures:
                raise _duplicate_log_error(log, self._futures[key])
            directory.logs[key] = self._futures[key] = log
        directory.is_stale = True  # its checkpoints may list logs that no longer exist

    def _add_log(self, key: TopicPartition, log: PartitionLog) -> None:
        known = self._logs.get(key)
        if known is None:
            self._logs[key] = log
            return
        newer = choose_newer_copy(known, log)
        if newer is None:
            raise _duplicate_log_error(log, known)
        self._logs[key] = newer
        older = log if self._logs[key] is known else known
        _log.warning("%s: deleting this older copy of %s", older.directory, newer.directory)
        with contextlib.suppress(OSError):  # its directory goes offline later
            self._delete_log(older)

    def _opener(self, directory: LogDirectory, now_ms: int) -> LogOpener:
        return LogOpener(self.storage, directory, now_ms, self._checkpoint_lowered_offsets)

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Flush and close all logs, write the checkpoints and the marker of a clean stop.

        A directory whose storage failed gets no marker: the next start recovers it.
        """
        for directory in self._directories:
            for log in directory.logs.values():
                log.close()
            try:
                self._put_offsets(directory)
                directory.write_checkpoints()
                if directory.health.failure is None:
                    directory.put_clean_marker(broker_epoch)
            except OSError as error:
                _log.error("%s: no clean stop: %s", directory.path, error)
            directory.close()
        self._directories, self._logs, self._futures = [], {}, {}

    # Directories

    @property
    def directories(self) -> list[LogDirectory]:
        """The directories that are online."""
        return list(self._directories)

    def is_online(self, path: Path) -> bool:
        """Whether it is a log directory of this broker and not offline."""
        return any(each.path == path and not each.health.failure for each in self._directories)

    def failed_directories(self) -> list[LogDirectory]:
        """Directories whose storage failed and that are not offline yet."""
        return [each for each in self._directories if each.health.failure is not None]

    def take_offline(self, directory: LogDirectory) -> None:
        """Close a failed directory and its logs; its files are not accessed any more."""
        self._directories.remove(directory)
        self.offline[directory.path] = directory.health.failure or OSError("taken offline")
        for key, log in directory.logs.items():
            for logs in (self._logs, self._futures):
                if logs.get(key) is log:
                    del logs[key]
            self._maintenance.drop_log(log)
            log.close_files()
        self._maintenance.cancel_removals(directory.path)
        directory.close()

    def _directory_of(self, log: PartitionLog) -> LogDirectory:
        return next(each for each in self._directories if each.health is log.health)

    # Logs

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, if there is one."""
        return self._logs.get((topic, partition))

    def future(self, topic: str, partition: int) -> PartitionLog | None:
        """The future copy that will replace the partition's log. While it exists the log must not
        be compacted."""
        return self._futures.get((topic, partition))

    def logs(self) -> list[PartitionLog]:
        """The logs of all partitions, in the order of their loading and creation."""
        return list(self._logs.values())

    def compactable_logs(self) -> list[PartitionLog]:
        """Logs that may be compacted: those without a future copy."""
        return [log for key, log in self._logs.items() if key not in self._futures]

    def futures(self) -> list[PartitionLog]:
        """All future copies."""
        return list(self._futures.values())

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: uuid.UUID = ZERO_UUID,
        overrides: Mapping[str, str] | None = None,
        *,
        is_new: bool = True,
    ) -> PartitionLog:
        """The log of a partition, created in the directory with the fewest logs if there is none.

        A log without topic id adopts `topic_id`. `overrides` become its settings. Raises OfflineLog
        when a log that is not new may lie in an offline directory, else OSError.
        """
        log = self._logs.get((topic, partition))
        config = LogConfig.from_properties(self._props, overrides)
        if log is None:
            if self.offline and not is_new:
                where = ", ".join(str(path) for path in self.offline)
                raise OfflineLog(f"{topic}-{partition} may lie in {where}, which is offline")
            log = self._create(topic, partition, topic_id, config)
        elif overrides is not None:
            log.config = config
        if log.topic_id == ZERO_UUID != topic_id:
            self._adopt_topic_id(log, topic_id)
        return log

    def configure(
        self, overrides: Callable[[str], Mapping[str, str]], topic: str | None = None
    ) -> None:
        """Apply the settings now in effect to the logs of a topic, or to all logs.

        Invalid settings are logged; the topic's logs then keep their previous ones.
        """
        known: dict[str, LogConfig | None] = {}
        for log in (*self._logs.values(), *self._futures.values()):
            if topic not in (None, log.topic):
                continue
            if log.topic not in known:
                known[log.topic] = self._parse_config(log.topic, overrides(log.topic))
            log.config = known[log.topic] or log.config

    def _parse_config(self, topic: str, overrides: Mapping[str, str]) -> LogConfig | None:
        try:
            return LogConfig.from_properties(self._props, overrides)
        except ValueError as error:
            _log.error(
                "settings of topic %s are invalid, the previous ones stay in effect: %s",
                topic,
                error,
            )
            return None

    def _adopt_topic_id(self, log: PartitionLog, topic_id: uuid.UUID) -> None:
        try:
            checkpoints.write_topic_id(self.storage, log.directory, topic_id)
        except OSError as error:
            log.fail(error)
            raise
        log.topic_id = topic_id

    def set_preferred_directory(self, topic: str, partition: int, path: Path) -> None:
        """Create the partition's log there, if one has to be created later."""
        present = (self._logs.get((topic, partition)), self._futures.get((topic, partition)))
        if all(log is None or log.directory.parent != path for log in present):
            self._preferred[topic, partition] = path

    def _create(
        self, topic: str, partition: int, topic_id: uuid.UUID, config: LogConfig
    ) -> PartitionLog:
        """Create a log in the first directory that works; one that fails goes offline."""
        key = (topic, partition)
        preferred = self._preferred.pop(key, None)
        trouble = OSError(f"{preferred} is offline: cannot create {topic}-{partition}")
        for directory in sorted(self._directories, key=lambda each: len(each.logs)):
            if directory.health.failure or preferred not in (None, directory.path):
                continue
            try:
                log = self._create_in(directory, f"{topic}-{partition}", key, topic_id, config)
            except OSError as error:
                directory.health.fail(error)
                trouble = error
                continue
            self._watermarks.pop(key, None)
            self._logs[key] = log
            return log
        raise trouble

    def _create_in(
        self,
        directory: LogDirectory,
        name: str,
        key: TopicPartition,
        topic_id: uuid.UUID,
        config: LogConfig,
    ) -> PartitionLog:
        if directory.is_stale:  # the new log must not inherit offsets of a deleted one
            self._put_offsets(directory)
            directory.write_checkpoints()
        folder = directory.path / name
        self.storage.make_directory(folder)
        if topic_id != ZERO_UUID:
            checkpoints.write_topic_id(self.storage, folder, topic_id)
        opener = self._opener(directory, self._clock.now_ms())
        log = opener.open(key, folder, config, CheckpointedState(clean=True))
        log.epochs.write()
        self.storage.sync_directory(directory.path)
        directory.logs[key] = log
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Rename the log's folder now, remove it after log.segment.delete.delay.ms. Raises
        OSError."""
        self.delete_future(topic, partition)
        self._preferred.pop((topic, partition), None)
        log = self._logs.pop((topic, partition), None)
        if log is not None:
            self._watermarks.pop((topic, partition), None)
            self._delete_log(log)

    def _delete_log(self, log: PartitionLog) -> None:
        directory = self._directory_of(log)
        del directory.logs[log.topic, log.partition]
        directory.is_stale = True
        self._maintenance.drop_log(log)
        try:
            log.rename_for_delete()
        except OSError as error:
            directory.health.fail(error)
            raise
        self._maintenance.schedule_removal(log, self._clock.now_ms())

    # Moving a log to another directory

    def create_future(self, topic: str, partition: int, path: Path) -> PartitionLog:
        """An empty copy of the partition's log in another directory. Raises OSError."""
        current, key = self._logs[topic, partition], (topic, partition)
        directory = next(each for each in self._directories if each.path == path)
        name = future_folder_name(topic, partition, self.storage.unique_id())
        self._preferred.pop(key, None)
        try:
            log = self._create_in(directory, name, key, current.topic_id, current.config)
        except OSError as error:
            directory.health.fail(error)
            raise
        self._futures[key] = log
        return log

    def delete_future(self, topic: str, partition: int) -> None:
        """Drop the copy, if there is one. Raises OSError."""
        log = self._futures.pop((topic, partition), None)
        if log is not None:
            self._delete_log(log)

    def is_promotable(self, topic: str, partition: int) -> bool:
        """Whether the copy is as durable as the log, so that a power cut cannot lose records by the
        promotion. If not, a flush of the copy begins; try again later."""
        old, new = self._logs[topic, partition], self._futures[topic, partition]
        if new.recovery_point >= old.recovery_point:
            return True
        self._maintenance.flush(new, new.log_end_offset)
        return False

    def promote_future(self, topic: str, partition: int) -> PartitionLog:
        """Replace the log by its copy, which must have caught up.

        The copy is renamed first, then the old log's folder is renamed for deletion. A crash in
        between leaves two copies, of which the next start keeps the newer. Raises OSError when the
        copy cannot be renamed; the log is then unchanged.
        """
        key = (topic, partition)
        old, new = self._logs[key], self._futures[key]
        source, target = self._directory_of(old), self._directory_of(new)
        try:
            new.rename_folder(f"{topic}-{partition}")
            self.storage.sync_directory(target.path)
        except OSError as error:
            target.health.fail(error)
            raise
        new.update_high_watermark(old.high_watermark)
        new.cleaned_to = old.cleaned_to
        del self._futures[key], source.logs[key]
        self._logs[key] = new
        self._maintenance.drop_log(old)
        source.is_stale = True
        try:
            # its files stay open until their removal: a reader may still use them
            old.rename_folder(deleted_folder_name(topic, partition, self.storage.unique_id()))
        except OSError as error:
            source.health.fail(error)
        self._maintenance.schedule_removal(old, self._clock.now_ms())
        self.checkpoint_cleaner_offsets(new)
        return new

    # Checkpoints

    def high_watermark_checkpoint(self, topic: str, partition: int) -> int:
        """The high watermark of the last checkpoint, before or after the start; 0 without one."""
        return self._watermarks.get((topic, partition), 0)

    def keep_high_watermark(self, topic: str, partition: int, offset: int) -> None:
        """Set the high watermark of a log that is no longer hosted, for the next checkpoint."""
        self._watermarks[topic, partition] = offset

    def checkpoint_high_watermarks(self, watermarks: Mapping[TopicPartition, int]) -> None:
        """Write `replication-offset-checkpoint` in each directory for the logs that lie there.

        A log that is not among `watermarks` keeps its last known one: after a start the controller
        may not have assigned it yet.
        """
        self._watermarks.update(watermarks)
        for directory in self._directories:
            self._put_high_watermarks(directory)
            self._write(directory)

    def checkpoint_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint` in each directory."""
        for directory in self._directories:
            directory.put_recovery_points()
            self._write(directory)

    def checkpoint_cleaner_offsets(self, log: PartitionLog) -> None:
        """Write `cleaner-offset-checkpoint` in the directory of a log that was cleaned."""
        directory = self._directory_of(log)
        directory.put_cleaner_offsets()
        self._write(directory)

    def checkpoint_log_start_offsets(self) -> None:
        """Write `log-start-offset-checkpoint` in each directory."""
        for directory in self._directories:
            directory.put_log_starts()
            self._write(directory)

    def _write(self, directory: LogDirectory) -> None:
        """Write the changed checkpoints of a directory in the background."""
        self._background(directory.write_checkpoints_in_background)

    def _checkpoint_lowered_offsets(self, directory: LogDirectory) -> None:
        """Write lowered offsets synchronously: they must be on disk before the next append."""
        directory.put_recovery_points()
        directory.put_log_starts()
        directory.put_cleaner_offsets()
        directory.write_checkpoints()

    def _put_offsets(self, directory: LogDirectory) -> None:
        directory.put_recovery_points()
        directory.put_log_starts()
        self._put_high_watermarks(directory)
        directory.put_cleaner_offsets()
        directory.is_stale = False

    def _put_high_watermarks(self, directory: LogDirectory) -> None:
        rows = {}
        for key, log in directory.logs.items():
            if self._futures.get(key) is log:
                rows[key] = log.high_watermark
            elif key in self._watermarks:
                rows[key] = self._watermarks[key]
        directory.high_watermarks.put(rows)

    # Periodic work

    def tick(self, now_ms: int) -> None:
        """Do the periodic work that is due: flushes, retention, delayed removals.

        Call it about once a second. A storage error fails the directory (`failed_directories`).
        """
        for directory in self._directories:
            if directory.is_stale and directory.health.failure is None:
                self._put_offsets(directory)
                self._write(directory)
        self._maintenance.run([*self._logs.values(), *self._futures.values()], now_ms)


def _duplicate_log_error(first: PartitionLog, second: PartitionLog) -> MisplacedDirectory:
    return MisplacedDirectory(
        f"{first.directory} and {second.directory} are the same partition: remove the one in the "
        "directory that failed last, or the one of an older topic with the same name"
    )
