"""A slow disk for one process: strace delays its writes to the files of its logs.

strace attaches to the living process (ptrace), sees every call, and delays the selected ones. When
strace ends in any way, SIGKILL included, the kernel detaches it and the process continues normally.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from urteil.chaos.log_directories import partitions, segments
from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until
from urteil.harness.child_process import await_exit
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.dependencies.strace import strace_binary

CALLS = "write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,ftruncate"
CHECKPOINTS = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
"""The broker writes each of them as NAME.tmp and then renames it."""
DELAYED = b"(DELAYED)"
ATTACH_S = 20.0
END_S = 10.0


def find_written_files(log_dir: Path) -> list[Path]:
    """The files in a log directory that its broker writes: active segments and checkpoints."""
    checkpoints = [log_dir / f"{name}.tmp" for name in CHECKPOINTS]
    return checkpoints + [
        segment for folder in partitions(log_dir) for segment in segments(folder)[-1:]
    ]


class SlowDisk:
    """Delays each write of process `pid` to `files` by `delay_ms`, until `close`.

    `files` are paths as the process itself opens them. Raises LabFailure when strace cannot attach.
    """

    def __init__(self, pid: int, files: Sequence[Path], delay_ms: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="urteil-slow-disk-")
        self._record = Path(self._folder.name) / "calls"
        self._output = Path(self._folder.name) / "output"
        self._pid = pid
        with self._output.open("wb") as output:
            self._strace = subprocess.Popen(
                self._argv(files, delay_ms), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        until(lambda: self._has_ended() or self._is_attached(), deadline_s=ATTACH_S)
        if not self._is_attached():
            reason = self._output.read_text(errors="replace").strip()[-300:]
            self.close()
            raise LabFailure(f"strace cannot be attached to process {pid}: {reason or 'no answer'}")

    def _argv(self, files: Sequence[Path], delay_ms: int) -> list[str]:
        try:
            strace = strace_binary()
        except MissingDependency as error:
            raise LabFailure(str(error)) from None
        path_words = [word for path in files for word in ("-P", str(path))]
        return [
            strace, "-f", "-p", str(self._pid), "-o", str(self._record), "-e", f"trace={CALLS}",
            "-e", f"inject={CALLS}:delay_enter={1000 * delay_ms}", *path_words,
        ]  # fmt: skip

    def delayed_calls(self) -> int:
        """The number of delayed calls so far."""
        return self._record.read_bytes().count(DELAYED) if self._record.exists() else 0

    def close(self) -> int:
        """Stop delaying. Returns the total number of delayed calls. Repeatable."""
        self._strace.terminate()
        await_exit(self._strace, deadline_s=END_S)
        delays = self.delayed_calls()
        self._folder.cleanup()
        return delays

    def _is_attached(self) -> bool:
        return find_tracer(self._pid) == self._strace.pid

    def _has_ended(self) -> bool:
        return self._strace.poll() is not None


def find_tracer(pid: int) -> int:
    """The process that traces all threads of another one; 0 without one."""
    tracers = set()
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue  # a thread that has just ended
        tracers.add(int(text.partition("TracerPid:")[2].split("\n", 1)[0]))
    return tracers.pop() if len(tracers) == 1 else 0
