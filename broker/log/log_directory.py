"""One log directory of a broker: its lock, clean stop marker, checkpoints and folder names."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from urteil.broker.log import checkpoints
from urteil.broker.log.checkpoints import CheckpointFile, TopicPartition
from urteil.broker.log.directory_health import DirectoryHealth
from urteil.broker.log.storage import DirectoryLock, Storage

if TYPE_CHECKING:
    from urteil.broker.log.partition_log import PartitionLog

_log = logging.getLogger("urteil.broker.log")


_LOG_FOLDER = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})")
_FUTURE_FOLDER = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})\.[0-9a-f]{32}-future")
_DELETED_FOLDER = re.compile(r".*-[0-9]+\.[0-9a-f]{32}-delete")
_LONGEST_NAME = 255


def future_folder_name(topic: str, partition: int, unique_id: str) -> str:
    """A name for the folder of a copy that is to replace a partition's log."""
    return f"{topic}-{partition}.{unique_id}-future"


def deleted_folder_name(topic: str, partition: int, unique_id: str) -> str:
    """A name for the folder of a log that is to be deleted (`LocalLog.logDeleteDirName`)."""
    suffix = f"-{partition}.{unique_id}-delete"
    return topic[: _LONGEST_NAME - len(suffix)] + suffix


class MisplacedDirectory(OSError):
    """A configuration error, not a disk failure: the broker must not start."""


class InconsistentMeta(MisplacedDirectory):
    """The directory belongs to another broker or cluster."""


class DamagedMeta(OSError):
    """`meta.properties` is damaged, so the owner of the directory is unknown."""


class LogDirectory:
    """A log directory, locked from construction to `close`. Raises OSError when it is locked.

    `logs` are the logs in it, future copies included; the log manager maintains it. `is_stale`: a
    checkpoint may still list a log that was deleted.
    """

    def __init__(self, storage: Storage, path: Path, on_failure: Callable[[], None]) -> None:
        self.path = path
        self.health = DirectoryHealth(path, on_failure)
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.is_stale = False
        self._storage = storage
        storage.make_directory(path)
        self._lock: DirectoryLock = storage.lock(path / ".lock")
        self.recovery_points = CheckpointFile(storage, path / checkpoints.RECOVERY_POINTS)
        self.log_starts = CheckpointFile(storage, path / checkpoints.LOG_STARTS)
        self.high_watermarks = CheckpointFile(storage, path / checkpoints.HIGH_WATERMARKS)
        self.cleaner_offsets = CheckpointFile(storage, path / checkpoints.CLEANER_OFFSETS)

    def put_recovery_points(self) -> None:
        """Set the recovery points for the next checkpoint."""
        self.recovery_points.put({key: log.recovery_point for key, log in self.logs.items()})

    def put_log_starts(self) -> None:
        """Set the log start offsets for the next checkpoint: only those inside a segment, as Kafka
        does; a start at a segment's base is known from the file names."""
        self.log_starts.put(
            {
                key: log.log_start_offset
                for key, log in self.logs.items()
                if log.log_start_offset > log.segments.first_offset
            }
        )

    def put_cleaner_offsets(self) -> None:
        """Set the cleaned offsets for the next checkpoint."""
        rows = {key: log.cleaned_to for key, log in self.logs.items()}
        self.cleaner_offsets.put({key: at for key, at in rows.items() if at is not None})

    def write_checkpoints(self) -> None:
        """Write the checkpoints that have new rows. Raises OSError."""
        for file in (
            self.recovery_points,
            self.log_starts,
            self.high_watermarks,
            self.cleaner_offsets,
        ):
            file.write()

    def write_checkpoints_in_background(self) -> None:
        """`write_checkpoints` for a background thread; errors are reported to `health`."""
        try:
            self.write_checkpoints()
        except OSError as error:
            self.health.fail(error)

    def consume_clean_marker(self) -> bool:
        """Whether the last stop was clean. Deletes the marker, so that a later crash is not taken
        for a clean stop."""
        marker = self.path / checkpoints.CLEAN_SHUTDOWN
        was_clean = self._storage.exists(marker)
        if was_clean:
            self._storage.remove(marker)
            self._storage.sync_directory(self.path)
        return was_clean

    def put_clean_marker(self, broker_epoch: int) -> None:
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._storage.write_atomic(self.path / checkpoints.CLEAN_SHUTDOWN, text.encode())

    def check_meta(self, broker_id: int, cluster_id: str | None, now_ms: int) -> None:
        """Compare `meta.properties` with the broker and cluster id, or write it.

        Raises InconsistentMeta, DamagedMeta.
        """
        remedy = (
            f"if the folder belongs to broker {broker_id} of cluster {cluster_id}, delete the file "
            "and the broker writes it again; otherwise correct log.dirs"
        )
        try:
            meta = checkpoints.read_meta(self._storage, self.path)
        except checkpoints.DamagedFile as error:
            raise DamagedMeta(f"{error}; {remedy}") from error
        known_id, known_cluster = meta.get("broker.id"), meta.get("cluster.id")
        if known_id is not None and int(known_id) != broker_id:
            raise InconsistentMeta(
                f"Configured broker.id {broker_id} doesn't match stored broker.id {known_id} in "
                f"{self.path / checkpoints.META_PROPERTIES}; {remedy}"
            )
        if cluster_id is None:
            return
        if known_cluster is not None and known_cluster != cluster_id:
            raise InconsistentMeta(
                f"The Cluster ID {cluster_id} doesn't match stored clusterId {known_cluster!r} in "
                f"{self.path / checkpoints.META_PROPERTIES}; {remedy}"
            )
        if known_id is None or known_cluster is None:
            own = meta.get("directory.id")
            checkpoints.write_meta(self._storage, self.path, broker_id, cluster_id, now_ms, own)

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """Read an offset checkpoint; a damaged one counts as empty, which is safe for all of
        them."""
        try:
            return checkpoints.read_offsets(self._storage, self.path / name)
        except checkpoints.DamagedFile as error:
            _log.error("%s: treated as empty", error)
            return {}

    def write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self._storage, self.path / name, offsets)

    def ensure_checkpoint(self, name: str) -> None:
        """Create an empty offset checkpoint if it is missing."""
        if not self._storage.exists(self.path / name):
            self.write_offsets(name, {})

    def partition_folders(self) -> list[tuple[str, int, Path]]:
        """(topic, partition, folder) of every log."""
        folders = []
        for name in self._storage.names(self.path):
            if not self._storage.is_directory(self.path / name):
                continue
            if match := _LOG_FOLDER.fullmatch(name):
                folders.append((match[1], int(match[2]), self.path / name))
            elif not _DELETED_FOLDER.fullmatch(name) and not _FUTURE_FOLDER.fullmatch(name):
                _log.warning("%s: not the folder of a log, ignored", self.path / name)
        return folders

    def future_folders(self) -> list[tuple[str, int, Path]]:
        """(topic, partition, folder) of future copies: logs that are being moved here."""
        names = self._storage.names(self.path)
        matches = [(_FUTURE_FOLDER.fullmatch(name), self.path / name) for name in names]
        return [
            (groups[1], int(groups[2]), path)
            for groups, path in matches
            if groups and self._storage.is_directory(path)
        ]

    def folders_to_delete(self) -> list[Path]:
        """Folders whose deletion a stop interrupted."""
        names = self._storage.names(self.path)
        deleted = [self.path / name for name in names if _DELETED_FOLDER.fullmatch(name)]
        return [path for path in deleted if self._storage.is_directory(path)]

    def close(self) -> None:
        self._lock.release()
