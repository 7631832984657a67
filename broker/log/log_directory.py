"""One log directory of a broker: its lock, its marker of a clean stop, its checkpoints."""

from __future__ import annotations

import json
import logging
import re
import uuid
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


def future_folder_name(topic: str, partition: int) -> str:
    """A name for the folder of a copy that is to replace a partition's log."""
    return f"{topic}-{partition}.{uuid.uuid4().hex}-future"


def deleted_folder_name(topic: str, partition: int) -> str:
    """A name for the folder of a log that is to be deleted (`LocalLog.logDeleteDirName`)."""
    suffix = f"-{partition}.{uuid.uuid4().hex}-delete"
    return topic[: _LONGEST_NAME - len(suffix)] + suffix


class MisplacedDirectory(OSError):
    """No disk is to blame: somebody mixed up folders, and the broker must not start."""


class InconsistentMeta(MisplacedDirectory):
    """The directory belongs to another broker or cluster."""


class DamagedMeta(OSError):
    """The directory does not say to whom it belongs."""


class LogDirectory:
    """Holds the lock from construction to `close`. Raises OSError when it is taken.

    `logs` are those that lie here, copies on their way here among them; the manager keeps it.
    `is_stale` says that a checkpoint may tell of a log that is gone.
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
        """Have the next checkpoint tell how far each log is durable."""
        self.recovery_points.put({key: log.recovery_point for key, log in self.logs.items()})

    def put_log_starts(self) -> None:
        """Only starts that the files do not tell: those within a segment (as Kafka does)."""
        self.log_starts.put(
            {
                key: log.log_start_offset
                for key, log in self.logs.items()
                if log.log_start_offset > log.segments.first_offset
            }
        )

    def put_cleaner_offsets(self) -> None:
        """Have the next checkpoint tell how far each log is cleaned."""
        rows = {key: log.cleaned_to for key, log in self.logs.items()}
        self.cleaner_offsets.put({key: at for key, at in rows.items() if at is not None})

    def write_checkpoints(self) -> None:
        """Write what was put into the checkpoints and is not on disk yet. Raises OSError."""
        for file in (
            self.recovery_points,
            self.log_starts,
            self.high_watermarks,
            self.cleaner_offsets,
        ):
            file.write()

    def write_checkpoints_in_background(self) -> None:
        """The same on a thread of its own, where nobody catches: `health` takes note."""
        try:
            self.write_checkpoints()
        except OSError as error:
            self.health.fail(error)

    def consume_clean_marker(self) -> bool:
        """Whether the last stop was clean; the marker is gone after, lest a crash look clean."""
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
        """Compare `meta.properties` with who we are, or write it.

        Raises InconsistentMeta, DamagedMeta.
        """
        mend = (
            f"if the folder is broker {broker_id}'s of cluster {cluster_id}, remove the file and "
            "it is written anew; if not, mend log.dirs"
        )
        try:
            meta = checkpoints.read_meta(self._storage, self.path)
        except checkpoints.DamagedFile as error:
            raise DamagedMeta(f"{error}; {mend}") from error
        known_id, known_cluster = meta.get("broker.id"), meta.get("cluster.id")
        if known_id is not None and int(known_id) != broker_id:
            raise InconsistentMeta(
                f"Configured broker.id {broker_id} doesn't match stored broker.id {known_id} in "
                f"{self.path / checkpoints.META_PROPERTIES}; {mend}"
            )
        if cluster_id is None:
            return
        if known_cluster is not None and known_cluster != cluster_id:
            raise InconsistentMeta(
                f"The Cluster ID {cluster_id} doesn't match stored clusterId {known_cluster!r} in "
                f"{self.path / checkpoints.META_PROPERTIES}; {mend}"
            )
        if known_id is None or known_cluster is None:
            own = meta.get("directory.id")
            checkpoints.write_meta(self._storage, self.path, broker_id, cluster_id, now_ms, own)

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """An offset checkpoint; a damaged one counts as empty, which is safe for all of them."""
        try:
            return checkpoints.read_offsets(self._storage, self.path / name)
        except checkpoints.DamagedFile as error:
            _log.error("%s: taken as empty", error)
            return {}

    def write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self._storage, self.path / name, offsets)

    def ensure_checkpoint(self, name: str) -> None:
        """Have an offset checkpoint, empty if it was not there."""
        if not self._storage.exists(self.path / name):
            self.write_offsets(name, {})

    def partition_folders(self) -> list[tuple[str, int, Path]]:
        """(topic, partition, folder) of every log."""
        found = []
        for name in self._storage.names(self.path):
            if not self._storage.is_directory(self.path / name):
                continue
            if parts := _LOG_FOLDER.fullmatch(name):
                found.append((parts[1], int(parts[2]), self.path / name))
            elif not _DELETED_FOLDER.fullmatch(name) and not _FUTURE_FOLDER.fullmatch(name):
                _log.warning("%s: not a log's folder, left alone", self.path / name)
        return found

    def future_folders(self) -> list[tuple[str, int, Path]]:
        """(topic, partition, folder) of the copies of logs that are on their way here."""
        names = self._storage.names(self.path)
        found = [(_FUTURE_FOLDER.fullmatch(name), self.path / name) for name in names]
        return [
            (parts[1], int(parts[2]), path)
            for parts, path in found
            if parts and self._storage.is_directory(path)
        ]

    def folders_to_delete(self) -> list[Path]:
        """Folders whose deletion a stop interrupted."""
        names = self._storage.names(self.path)
        doomed = [self.path / name for name in names if _DELETED_FOLDER.fullmatch(name)]
        return [path for path in doomed if self._storage.is_directory(path)]

    def close(self) -> None:
        self._lock.release()
