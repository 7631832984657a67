"""Where each process of a run stands when it hangs: `stacks/` of the run, a file a process.

On SIGQUIT a JVM writes the stacks of all its threads to its output and goes on, and so do our own
brokers and clients. A process that does not listen to it, which would end by it, is not asked.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = "stacks"
TELLS_S = 5.0
QUIET_S = 0.3
POLL_S = 0.05
MOST = 200_000
"""Characters of one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """A process of the run, and all that it has written to its output."""

    name: str
    pid: int
    output: Callable[[], str]


@dataclass(slots=True)
class Stacks:
    """Asks the processes of the run in `run_dir`; `sources` name them at that moment. `own` is what
    this process is called."""

    run_dir: Path
    sources: list[Callable[[], Iterable[Teller]]] = field(default_factory=list)
    own: str = "lab"
    taken: bool = field(init=False, default=False)

    def take(self, why: str) -> Path | None:
        """The folder with a file a process, this one among them; only the first time,
        since later ones would tell of the end that the first one led to."""
        if self.taken:
            return None
        self.taken = True
        folder = self.run_dir / FOLDER
        folder.mkdir(exist_ok=True)
        with (folder / f"{self.own}.txt").open("w") as file:
            file.write(f"{why}\npid {os.getpid()}\n")
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
        tellers = [teller for source in self.sources for teller in source()]
        with ThreadPoolExecutor(max(1, len(tellers))) as pool:
            for teller, told in zip(tellers, pool.map(asked, tellers), strict=True):
                text = f"{why}\npid {teller.pid}\n{told[:MOST]}\n"
                (folder / f"{teller.name}.txt").write_text(text, "utf-8", "replace")
        return folder


@contextmanager
def watched(limit_s: float | None, hung: Callable[[], None]) -> Iterator[None]:
    """A block that is interrupted when it lasts longer, after `hung` was called in another thread.

    As by SIGTERM: TimeoutError where that is a KeyboardInterrupt in the main thread, as it is
    during a run; in other threads it goes on after `hung`. None is no limit.
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


def asked(teller: Teller) -> str:
    """What the process writes when it is asked where it stands; its own output has it too."""
    state = _status(teller.pid)
    if not state:
        return "it is gone"
    if state.get("State", "")[:1] in "Tt":
        return "it is stopped (SIGSTOP), and tells nothing"
    if not int(state.get("SigCgt", "0"), 16) >> (signal.SIGQUIT - 1) & 1:
        return "it does not listen to SIGQUIT, by which it would end: not asked"
    before = len(teller.output())
    try:
        os.kill(teller.pid, signal.SIGQUIT)
    except ProcessLookupError:
        return "it is gone"
    return _grown(teller, before) or f"it wrote nothing within {TELLS_S:.0f} s"


def _grown(teller: Teller, before: int) -> str:
    """What came after `before`, once nothing more comes."""
    deadline, told, quiet = time.monotonic() + TELLS_S, "", time.monotonic()
    while time.monotonic() < deadline:
        now = teller.output()[before:]
        if now != told:
            told, quiet = now, time.monotonic()
        elif told and time.monotonic() - quiet > QUIET_S:
            break
        time.sleep(POLL_S)
    return told


def _status(pid: int) -> dict[str, str]:
    """What Linux says of a process; empty when it is gone, or where there is no Linux."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
