"""The cleaner: it selects logs and drives their cleanings (Kafka's `LogCleaner`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from urteil.broker.log.checkpoints import TopicPartition
from urteil.broker.log.cleaner.candidates import Candidate, find_candidate, select_dirtiest
from urteil.broker.log.cleaner.cleaner_settings import CleanerSettings
from urteil.broker.log.cleaner.io_throttle import IoThrottle
from urteil.broker.log.cleaner.log_cleaning import CleaningAborted, LogCleaning, Totals
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.segment import DamagedSegment

_log = logging.getLogger("urteil.broker.log.cleaner")

_POLL_MS = 20


class Cleaner:
    """Cleans the logs of a broker, at most `log.cleaner.threads` at once.

    `tick` changes the logs on the event loop and passes the other work to `background`, which runs
    it directly (tests, simulation) or in threads. `settings` may be replaced.
    """

    def __init__(
        self,
        logs: Callable[[], Iterable[PartitionLog]],
        settings: CleanerSettings,
        checkpoint: Callable[[PartitionLog], None],
        background: Callable[[Callable[[], None]], object] = lambda job: job(),
    ) -> None:
        """`checkpoint` is called with a log after its `cleaned_to` rose, to write it to disk."""
        self._logs = logs
        self._checkpoint = checkpoint
        self._background = background
        self._settings = settings
        self._throttle = IoThrottle(settings.io_max_bytes_per_second)
        self._cleanings: list[LogCleaning] = []
        self._uncleanable: dict[TopicPartition, PartitionLog] = {}
        self._search_due_ms = 0
        self.last_totals = Totals()
        self.last_duration_ms = 0
        self.max_delay_ms = 0
        self.max_ratio = 0.0
        self.last_search_ms: int | None = None

    @property
    def settings(self) -> CleanerSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: CleanerSettings) -> None:
        self._settings = settings
        self._throttle.bytes_per_second = settings.io_max_bytes_per_second
        self._search_due_ms = 0

    def tick(self, now_ms: int) -> int:
        """Continue all cleanings and start new ones; return the ms until the next call."""
        for cleaning in list(self._cleanings):
            self._continue(cleaning, now_ms)
        if self._settings.enabled and self._is_due(now_ms):
            self._start_cleanings(now_ms)
        if not self._cleanings:
            return max(self._search_due_ms - now_ms, 0) or self._settings.backoff_ms
        return max(self._throttle.wait_ms(now_ms), _POLL_MS)

    # Selection

    def _is_due(self, now_ms: int) -> bool:
        # a clock that is set back must not stop the cleaner
        return not 0 < self._search_due_ms - now_ms <= self._settings.backoff_ms

    def _start_cleanings(self, now_ms: int) -> None:
        """Start cleanings up to the limit of threads; wait for the back-off if no log is due."""
        if len(self._cleanings) >= self._settings.threads:
            return
        self.last_search_ms = now_ms
        self._forget_removed_logs()
        while len(self._cleanings) < self._settings.threads:
            chosen = self._choose(now_ms)
            if chosen is None:
                self._search_due_ms = now_ms + max(self._settings.backoff_ms, 1)
                break
            self._begin(chosen, now_ms)
        self._apply_retention(now_ms)

    def _begin(self, chosen: Candidate, now_ms: int) -> None:
        try:
            cleaning = LogCleaning(chosen, self._settings.map_bytes, now_ms)
        except (OSError, ValueError) as error:
            self._mark_uncleanable(chosen.log, error)
            return
        self._cleanings.append(cleaning)
        self._continue(cleaning, now_ms)

    def _choose(self, now_ms: int) -> Candidate | None:
        candidates = []
        for log in self._list_cleanable():
            try:
                candidates.append(find_candidate(log, now_ms))
            except OSError as error:
                self._mark_uncleanable(log, error)
        self.max_ratio = max((each.ratio for each in candidates), default=0.0)
        self.max_delay_ms = max((each.delay_ms for each in candidates), default=0)
        return select_dirtiest(candidates)

    def _list_cleanable(self) -> list[PartitionLog]:
        """Compacted logs that may be cleaned now: healthy, not marked and not being cleaned."""
        busy = [cleaning.log for cleaning in self._cleanings]
        return [
            log
            for log in self._logs()
            if log.config.compacts
            and log.failure is None
            and log not in busy
            and self._uncleanable.get((log.topic, log.partition)) is not log
        ]

    def _apply_retention(self, now_ms: int) -> None:
        """Apply retention to the compacted logs: by age and size if their policy has `delete`, and
        before the log start in any case. Never during a cleaning."""
        for log in self._list_cleanable():
            try:
                log.apply_retention(now_ms)
            except OSError as error:
                log.fail(error)

    # Progress

    def _continue(self, cleaning: LogCleaning, now_ms: int) -> None:
        while cleaning in self._cleanings:
            work = cleaning.work
            if not self._is_current(cleaning):
                work.cancelled = True
            if work.running:
                return
            self._throttle.record(work.used_bytes, now_ms)
            work.used_bytes = 0
            if work.cancelled:
                self._end(cleaning)
            elif work.error is not None:
                self._handle_failure(cleaning, work.error)
            elif work.done:
                self._proceed(cleaning, now_ms)
            elif self._throttle.wait_ms(now_ms):
                return
            else:
                work.start(self._background, self._throttle.budget(len(self._cleanings)))

    def _is_current(self, cleaning: LogCleaning) -> bool:
        return cleaning.is_valid and any(log is cleaning.log for log in self._logs())

    def _proceed(self, cleaning: LogCleaning, now_ms: int) -> None:
        try:
            if cleaning.proceed(now_ms):
                return
        except CleaningAborted as error:
            _log.info("%s", error)
        except OSError as error:
            cleaning.log.fail(error)
        except Exception as error:  # a bug: the other logs must not be affected
            _log.exception("%r", cleaning.log)
            self._mark_uncleanable(cleaning.log, error)
        else:
            self._finish(cleaning, now_ms)
        self._end(cleaning)

    def _finish(self, cleaning: LogCleaning, now_ms: int) -> None:
        log, totals = cleaning.log, cleaning.totals
        begin, log.cleaned_to = log.cleaned_to, cleaning.cleaned_to
        self.last_totals, self.last_duration_ms = totals, now_ms - cleaning.began_ms
        self._search_due_ms = now_ms
        _log.info(
            "%r: cleaned from %s to %d: kept %d of %d records, %d of %d bytes",
            log, begin, log.cleaned_to, totals.records_kept, totals.records_read,
            totals.bytes_written, totals.bytes_read,
        )  # fmt: skip
        try:
            self._checkpoint(log)
        except OSError as error:
            log.fail(error)

    def _handle_failure(self, cleaning: LogCleaning, error: Exception) -> None:
        has_source_segments = cleaning.has_source_segments
        self._end(cleaning)
        if not has_source_segments:
            return
        if isinstance(error, OSError) and not isinstance(error, DamagedSegment):
            cleaning.log.fail(error)
        else:
            self._mark_uncleanable(cleaning.log, error)

    def _end(self, cleaning: LogCleaning) -> None:
        self._cleanings.remove(cleaning)
        try:
            cleaning.discard()
        except OSError as error:
            cleaning.log.fail(error)

    # Uncleanable logs

    def _mark_uncleanable(self, log: PartitionLog, error: Exception) -> None:
        _log.error("%r: cannot be cleaned, skipped until the broker restarts: %s", log, error)
        self._uncleanable[log.topic, log.partition] = log

    def _forget_removed_logs(self) -> None:
        if self._uncleanable:
            present = {id(log) for log in self._logs()}
            self._uncleanable = {
                key: log for key, log in self._uncleanable.items() if id(log) in present
            }

    def uncleanable(self, directory: Path) -> list[PartitionLog]:
        """The logs of a log directory that are marked uncleanable."""
        return [log for log in self._uncleanable.values() if log.directory.parent == directory]

    def stop(self) -> None:
        """Cancel the background work; no segment is swapped in afterwards."""
        for cleaning in self._cleanings:
            cleaning.work.cancelled = True

    def close(self) -> None:
        """Remove the unfinished files, after all background work has ended."""
        for cleaning in list(self._cleanings):
            self._end(cleaning)
