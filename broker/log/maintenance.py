"""Periodic work on logs: flushes, retention, index rebuilds, delayed removals (`LogManager`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from urteil.broker.log.flush_job import FlushJob
from urteil.broker.log.index_rebuild import IndexRebuild
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Storage

_log = logging.getLogger("urteil.broker.log")

_RETENTION_CHECK_MS = 300_000
_EXPIRATION_CHECK_MS = 600_000
_INITIAL_DELAY_MS = 30_000


class Maintenance:
    """Runs the periodic work of all logs. A storage error of one log fails its whole directory."""

    def __init__(
        self,
        storage: Storage,
        broker_props: Mapping[str, str],
        background: Callable[[Callable[[], None]], object],
    ) -> None:
        self._storage = storage
        self._props = broker_props
        self._background = background
        self._flushes: dict[PartitionLog, FlushJob] = {}
        self._rebuilds: dict[PartitionLog, IndexRebuild] = {}
        self._removals: list[tuple[int, PartitionLog]] = []
        self._retention_due_ms = self._expiration_due_ms = 0

    def start(self, now_ms: int) -> None:
        """Set the first due times: retention after log.initial.task.delay.ms, the expiration of
        producers after one interval (`PeriodicProducerExpirationCheck`)."""
        delay_ms = self._number("log.initial.task.delay.ms", _INITIAL_DELAY_MS)
        self._retention_due_ms = now_ms + delay_ms
        self._expiration_due_ms = now_ms + self._expiration_period_ms()

    def schedule_removal(self, log: PartitionLog, now_ms: int) -> None:
        """Remove the log's folder after the broker's file.delete.delay.ms. The topic's own setting
        does not apply: it was deleted with the topic."""
        delay_ms = LogConfig.from_properties(self._props).file_delete_delay_ms
        self._removals.append((now_ms + delay_ms, log))

    def drop_log(self, log: PartitionLog) -> None:
        """Drop the running jobs of a log that was deleted or went offline."""
        self._flushes.pop(log, None)
        self._rebuilds.pop(log, None)

    def cancel_removals(self, path: Path) -> None:
        """Cancel the delayed removals in a directory."""
        self._removals = [item for item in self._removals if item[1].directory.parent != path]

    def run(self, logs: Sequence[PartitionLog], now_ms: int) -> None:
        """Do the work that is due."""
        healthy = [log for log in logs if log.failure is None]
        self._finish_flushes()
        for log in healthy:
            self._start_flush(log, now_ms)
        self._finish_rebuilds()
        for log in healthy:
            if log.segments.misindexed and log not in self._rebuilds:
                self._start_rebuild(log)
        if now_ms >= self._retention_due_ms:
            period_ms = self._number("log.retention.check.interval.ms", _RETENTION_CHECK_MS)
            self._retention_due_ms = now_ms + period_ms
            self._for_each(healthy, lambda log: self._apply_retention(log, now_ms))
        if now_ms >= self._expiration_due_ms:
            self._expiration_due_ms = now_ms + self._expiration_period_ms()
            for log in healthy:
                log.expire_producers(now_ms)
        self._for_each(healthy, lambda log: log.remove_deleted(now_ms))
        self._remove_due(now_ms)

    def _for_each(self, logs: Iterable[PartitionLog], do: Callable[[PartitionLog], None]) -> None:
        for log in logs:
            try:
                if log.failure is None:
                    do(log)
            except OSError as error:
                log.fail(error)

    def _expiration_period_ms(self) -> int:
        return self._number("producer.id.expiration.check.interval.ms", _EXPIRATION_CHECK_MS)

    def _number(self, name: str, default: int) -> int:
        return int(self._props.get(name) or default)

    def _start_flush(self, log: PartitionLog, now_ms: int) -> None:
        if log in self._flushes:
            return
        if now_ms - log.flushed_ms >= log.config.flush_ms:
            upto = log.log_end_offset
        elif log.has_unflushed_segments:
            upto = log.segments.active_segment.base_offset
        else:
            return
        log.flushed_ms = now_ms
        if upto > log.recovery_point:
            self.flush(log, upto)

    def flush(self, log: PartitionLog, upto: int) -> None:
        """Make offsets below `upto` durable in the background; a later `run` raises the recovery
        point."""
        if log in self._flushes:
            return
        try:
            job = log.create_flush_job(upto)
        except OSError as error:
            log.fail(error)
            return
        self._flushes[log] = job
        self._background(job.run)

    def _finish_flushes(self) -> None:
        for log, job in list(self._flushes.items()):
            if job.done:
                del self._flushes[log]
                log.finish_flush(job)

    def _start_rebuild(self, log: PartitionLog) -> None:
        """Rebuild the indexes of one sealed segment; an active segment waits until it is sealed."""
        sealed = [
            each for each in log.segments.misindexed if each is not log.segments.active_segment
        ]
        if sealed:
            job = IndexRebuild(self._storage, sealed[0], log.config.index_interval_bytes)
            self._rebuilds[log] = job
            self._background(job.run)

    def _finish_rebuilds(self) -> None:
        for log, job in list(self._rebuilds.items()):
            if job.done:
                del self._rebuilds[log]
                self._for_each([log], job.finish)

    def _apply_retention(self, log: PartitionLog, now_ms: int) -> None:
        # the cleaner applies retention to compacted logs, never during a cleaning
        if not log.config.compacts and log.apply_retention(now_ms):
            _log.info("%r: old segments go", log)

    def _remove_due(self, now_ms: int) -> None:
        due = [log for due_ms, log in self._removals if due_ms <= now_ms]
        self._removals = [item for item in self._removals if item[0] > now_ms]
        for log in due:
            log.close_files()
        self._for_each(due, lambda log: self._storage.remove_tree(log.directory))
