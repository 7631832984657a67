"""Loading of one log directory at the start of a broker (`LogManager.loadLogs`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from urteil.broker.log import checkpoints
from urteil.broker.log.checkpoints import ZERO_UUID, TopicPartition
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.log_directory import LogDirectory
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.log.storage import Storage

_log = logging.getLogger("urteil.broker.log")

ConfigOf = Callable[[str], LogConfig]


@dataclass(slots=True)
class LoadedDirectory:
    """The logs of one directory and the high watermarks of its checkpoint."""

    logs: dict[TopicPartition, PartitionLog] = field(default_factory=dict)
    futures: dict[TopicPartition, PartitionLog] = field(default_factory=dict)
    watermarks: dict[TopicPartition, int] = field(default_factory=dict)

    def close(self) -> None:
        for log in (*self.logs.values(), *self.futures.values()):
            log.close_files()


class LogOpener:
    """Opens logs in the folders of one directory."""

    def __init__(
        self,
        storage: Storage,
        directory: LogDirectory,
        now_ms: int,
        on_lowered: Callable[[LogDirectory], None],
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._now_ms = now_ms
        self._on_cut = on_lowered

    def load(self, config_of: ConfigOf) -> LoadedDirectory:
        """Open every log; recover them after an unclean stop. Raises OSError."""
        directory, loaded = self._directory, LoadedDirectory()
        clean = directory.consume_clean_marker()
        recovery = directory.read_offsets(checkpoints.RECOVERY_POINTS)
        starts = directory.read_offsets(checkpoints.LOG_STARTS)
        cleaned = directory.read_offsets(checkpoints.CLEANER_OFFSETS)
        loaded.watermarks = directory.read_offsets(checkpoints.HIGH_WATERMARKS)
        directory.ensure_checkpoint(checkpoints.CLEANER_OFFSETS)
        for folder in directory.folders_to_delete():
            self._storage.remove_tree(folder)
        try:
            for logs, folders in (
                (loaded.logs, directory.partition_folders()),
                (loaded.futures, directory.future_folders()),
            ):
                for topic, partition, folder in folders:
                    key = (topic, partition)
                    if key in loaded.logs or key in loaded.futures:
                        self._rename_stray(folder)
                        continue
                    checkpointed = CheckpointedState(
                        recovery_point=recovery.get(key, 0),
                        log_start_offset=starts.get(key, 0),
                        high_watermark=loaded.watermarks.get(key),
                        cleaned_to=cleaned.get(key),
                        clean=clean,
                    )
                    logs[key] = self.open(key, folder, config_of(topic), checkpointed)
        except OSError:
            loaded.close()
            raise
        state = "a clean" if clean else "an unclean"
        _log.info("%s: %d logs after %s stop", directory.path, len(loaded.logs), state)
        return loaded

    def _rename_stray(self, folder: Path) -> None:
        """Rename a second copy of a log, found where the partition's log already is. It may hold
        records, so it is not deleted; no broker loads the new name."""
        target = folder.with_name(folder.name.removesuffix("-future") + "-stray")
        self._storage.rename(folder, target)
        _log.warning("%s: a second copy of a log, renamed to %s", folder, target.name)

    def open(
        self, key: TopicPartition, folder: Path, config: LogConfig, checkpointed: CheckpointedState
    ) -> PartitionLog:
        """Open the log in an existing folder. Raises OSError."""
        try:
            topic_id = checkpoints.read_topic_id(self._storage, folder)
        except checkpoints.DamagedFile as error:
            _log.error("%s: topic id treated as unknown", error)
            topic_id = ZERO_UUID
        return PartitionLog(
            self._storage,
            folder,
            *key,
            topic_id,
            config,
            self._now_ms,
            checkpointed,
            on_lowered=partial(self._on_cut, self._directory),
            health=self._directory.health,
        )


def choose_newer_copy(first: PartitionLog, second: PartitionLog) -> PartitionLog | None:
    """The newer of two copies of a partition, None if they cannot be compared.

    A crash between the two renames that end a move leaves both under the partition's name; the
    newer one then has all records of the older one. A disk that failed while a log was created
    leaves an empty folder. Apache Kafka does not start in either case.
    """
    for each, rival in ((first, second), (second, first)):
        if each.topic_id == ZERO_UUID and _age(each) == (-1, 0):
            return rival
    if first.topic_id == ZERO_UUID or first.topic_id != second.topic_id:
        return None
    return first if _age(first) > _age(second) else second


def _age(log: PartitionLog) -> tuple[int, int]:
    return log.latest_epoch, log.log_end_offset


def topic_config_reader(
    props: Mapping[str, str], overrides: Callable[[str], Mapping[str, str]] | None
) -> ConfigOf:
    """A function from a topic to its settings: its overrides, else the broker's."""
    return lambda topic: LogConfig.from_properties(props, overrides(topic) if overrides else None)
