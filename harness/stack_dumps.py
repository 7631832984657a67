"""Stack dumps of a hanging run: `stacks/` of the run's folder, one file a process.

On SIGQUIT a JVM writes the stacks of its threads to its output and continues; our brokers and
clients do the same. A process without a handler would end by the signal, so it gets none.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from urteil.chaos.waiting import until

FOLDER = "stacks"
DUMP_DEADLINE_S = 5.0
QUIET_S = 0.3
POLL_S = 0.05
MOST = 200_000
"""The limit of one process's dump, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpSource:
    """A process of the run, with the file of its output."""

    name: str
    pid: int
    output: Callable[[], str]


@dataclass(slots=True)
class Stacks:
    """Dumps the processes of the run in `run_dir`. `sources` lists them when called; `own` names
    this process."""

    run_dir: Path
    sources: list[Callable[[], Iterable[DumpSource]]] = field(default_factory=list)
    own: str = "lab"
    taken: bool = field(init=False, default=False)

    def take(self, why: str) -> Path | None:
        """Write one file a process, this one included, and return the folder.

        Only the first call does so: later dumps would show the shutdown that followed the first.
        """
        if self.taken:
            return None
        self.taken = True
        folder = self.run_dir / FOLDER
        folder.mkdir(exist_ok=True)
        with (folder / f"{self.own}.txt").open("w") as file:
            file.write(f"{why}\npid {os.getpid()}\n")
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
        dump_sources = [source for running in self.sources for source in running()]
        with ThreadPoolExecutor(max(1, len(dump_sources))) as pool:
            for source, dump in zip(
                dump_sources, pool.map(request_dump, dump_sources), strict=True
            ):
                text = f"{why}\npid {source.pid}\n{dump[:MOST]}\n"
                (folder / f"{source.name}.txt").write_text(text, "utf-8", "replace")
        return folder


@contextmanager
def limit_duration(limit_s: float | None, hung: Callable[[], None]) -> Iterator[None]:
    """Interrupt a block that lasts longer than `limit_s`, after a call of `hung` in another thread.

    The interrupt is that of SIGTERM. It becomes TimeoutError where it is a KeyboardInterrupt in the
    main thread, as during a run; in other threads the block continues after `hung`. None means no
    limit.
    """
    if limit_s is None:
        yield
        return
    fired = threading.Event()
    in_main = threading.current_thread() is threading.main_thread()

    def fire() -> None:
        fired.set()
        hung()
        if in_main:
            os.kill(os.getpid(), signal.SIGTERM)

    timer = threading.Timer(limit_s, fire)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if fired.is_set():
            raise TimeoutError(f"the run hung: it had not ended after {limit_s:.0f} s") from None
        raise
    finally:
        timer.cancel()


def request_dump(source: DumpSource) -> str:
    """Request a stack dump from a process and return it. The process's own output has it too."""
    state = _status(source.pid)
    if not state:
        return "it has ended"
    if state.get("State", "")[:1] in "Tt":
        return "no dump: the process is stopped (SIGSTOP)"
    if not int(state.get("SigCgt", "0"), 16) >> (signal.SIGQUIT - 1) & 1:
        return "no dump: the process has no handler for SIGQUIT, which would end it"
    before = len(source.output())
    try:
        os.kill(source.pid, signal.SIGQUIT)
    except ProcessLookupError:
        return "it has ended"
    return _await_output(source, before) or f"it wrote nothing within {DUMP_DEADLINE_S:.0f} s"


def _await_output(source: DumpSource, before: int) -> str:
    """The output after byte `before`, once it has stopped growing."""

    def read() -> str:
        return source.output()[before:]

    if not until(read, deadline_s=DUMP_DEADLINE_S, poll_s=POLL_S):
        return ""
    return until(
        read,
        lambda _output: False,
        deadline_s=DUMP_DEADLINE_S,
        poll_s=POLL_S,
        patience_s=QUIET_S,
    )


def _status(pid: int) -> dict[str, str]:
    """The fields of /proc/PID/status. Empty for a process that ended, and on other systems than
    Linux."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
