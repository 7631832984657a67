"""Disks, clocks and ZooKeeper of a paper cluster: real files with synthetic logs."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from urteil.chaos.flushed_files import FlushedFiles
from urteil.chaos.observations import ControllerTerm

if TYPE_CHECKING:
    from tests.chaos.paper import PaperCluster

BATCH_BYTES = 100


def batch(base: int, count: int = 4) -> bytes:
    """A batch with a valid header and BATCH_BYTES in all."""
    head = struct.pack(">qiibIhi", base, BATCH_BYTES - 12, 0, 2, 7, 0, count - 1)
    return head.ljust(BATCH_BYTES, b"x")


def write_log(folder: Path, *, segments: int = 2, batches: int = 5) -> None:
    """A log of segments with batches of four records, with indexes and a snapshot."""
    folder.mkdir(parents=True)
    for number in range(segments):
        base = number * batches * 4
        data = b"".join(batch(base + 4 * number) for number in range(batches))
        for suffix, content in ((".log", data), (".index", b"i" * 64), (".timeindex", b"t" * 96)):
            (folder / f"{base:020d}{suffix}").write_bytes(content)
        (folder / f"{base:020d}.snapshot").write_bytes(b"s" * 40)


def write_recovery_points(log_dir: Path, **points: int) -> None:
    """The checkpoint file; `t_0=8` means that t-0 is flushed below offset 8."""
    lines = [f"{name.replace('_', ' ')} {offset}\n" for name, offset in points.items()]
    text = f"0\n{len(lines)}\n{''.join(lines)}"
    (log_dir / "recovery-point-offset-checkpoint").write_text(text)


class PaperDisks:
    """A log directory for each broker, with a log of t-0 whose first segment is half flushed."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self._place = tempfile.TemporaryDirectory()
        self.limits: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.flushed: FlushedFiles | None = None

    def folder(self, node: str) -> Path:
        log_dir = Path(self._place.name, node, "data")
        if not log_dir.parent.exists():
            write_log(log_dir / "t-0")
            write_recovery_points(log_dir, t_0=12)
        return log_dir

    @contextmanager
    def open_log_directories(self, node: str) -> Iterator[Sequence[Path]]:
        log_dir = self.folder(node)
        for topic, views in self.cluster.views.items():
            for partition in views if topic != "t" else ():
                (log_dir / f"{topic}-{partition}").mkdir(exist_ok=True)
        yield [log_dir]

    def flushed_files(self, node: str) -> FlushedFiles | None:
        return self.flushed

    def limit_file_size(self, node: str, size_bytes: int | None) -> int | None:
        if size_bytes is None or self.cluster.without_effect:
            self.limits.pop(node, None)
        else:
            self.limits[node] = size_bytes
        return self.limits.get(node)

    def make_read_only(self, node: str) -> Sequence[str]:
        return [f"data is mounted {'rw' if self.cluster.without_effect else 'ro'}"]

    def delay_writes(self, node: str, delay_ms: int) -> None:
        self.held[node] = 0 if self.cluster.without_effect else 3

    def delayed_writes(self, node: str) -> int | None:
        return self.held.get(node)

    def stop_delaying_writes(self, node: str) -> int:
        return self.held.pop(node, 0)


class PaperZooKeeperAdmin:
    """Every broker has a session; a broker that loses it registers with another one at once."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self.sessions = {node: number for number, node in enumerate(cluster.brokers, 1)}
        self.zxid = 1

    def session(self, broker: str) -> int | None:
        return self.sessions[broker]

    def end_session(self, session: int) -> None:
        for node, held in self.sessions.items():
            if held == session and not self.cluster.without_effect:
                self.sessions[node] += 10

    def controller_term(self) -> ControllerTerm | None:
        return ControllerTerm(broker="b1", zxid=self.zxid)

    def delete_controller(self) -> None:
        self.zxid += not self.cluster.without_effect


class PaperCommands:
    """Brokers accept a command only with their present process id."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster

    def update_metadata_request(self, node: str) -> bytes:
        return str(self.cluster.status(node).pid).encode()

    stop_replica_request = update_metadata_request

    def send(self, node: str, command: bytes) -> str:
        return "" if command == self.update_metadata_request(node) else "StaleBrokerEpochError"


class PaperClocks:
    """Clocks that show what was set."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self.ahead: dict[str, float] = {}

    def set_offset(self, node: str, *, offset_s: float) -> None:
        if not self.cluster.without_effect:
            self.ahead[node] = offset_s

    def clock_offset_s(self, node: str) -> float:
        return self.ahead.get(node, 0.0)

    def precision_s(self, node: str) -> float:
        return 0.0
