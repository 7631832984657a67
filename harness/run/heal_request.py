"""The request of `urteil heal RUN` to the lab that plays the run: two files in the run's folder.

The lab holds a lock on `lab.lock` while it plays. If the lock is free, the lab has died.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from urteil.chaos.waiting import until

LOCK, REQUEST, ANSWER = "lab.lock", "heal.request", "heal.answer"
POLL_S = 0.05


class HealRequests:
    """The lab's side: accepts requests and answers them."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir

    @contextmanager
    def accept(self) -> Iterator[None]:
        """Accept requests until the end of the block."""
        with (self._run_dir / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def is_pending(self) -> bool:
        """Whether a request needs an answer."""
        return (self._run_dir / REQUEST).exists()

    def answer(self, why_not: str) -> None:
        """Write the answer atomically. An empty one means that everything is healed."""
        (self._run_dir / REQUEST).unlink(missing_ok=True)
        part = self._run_dir / f"{ANSWER}.part"
        part.write_text(why_not)
        part.replace(self._run_dir / ANSWER)


def is_being_played(run_dir: Path) -> bool:
    """Whether a lab plays the run now."""
    try:
        with (run_dir / LOCK).open("r+") as lock:
            # Shared, since other requests may check at the same time.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def request_healing(run_dir: Path, *, deadline_s: float) -> str:
    """Request healing. Returns the error of the lab, empty if it healed. Raises TimeoutError if the
    lab does not answer."""
    (run_dir / ANSWER).unlink(missing_ok=True)
    (run_dir / REQUEST).touch()
    if not until(
        (run_dir / ANSWER).exists,
        lambda answered: answered or not is_being_played(run_dir),
        deadline_s=deadline_s,
        poll_s=POLL_S,
    ):
        (run_dir / REQUEST).unlink(missing_ok=True)
        raise TimeoutError(
            f"the lab that plays {run_dir.name} does not answer: it plays no faults (any more), or "
            "one that takes long to begin; then repeat the request"
        )
    return (run_dir / ANSWER).read_text()
