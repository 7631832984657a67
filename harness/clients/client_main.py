"""The common main function of all client processes: start, first journal entry, and end."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from urteil.harness.clients.spec import (
    IN_GROUP,
    TRANSACTIONAL,
    ClientSpec,
    instance_id,
    load_spec,
    transactional_id,
)
from urteil.harness.dependencies import kafka
from urteil.harness.evidence.journal import Begin, JournalWriter
from urteil.harness.wakeup_pipe import WakeupPipe

PARENT_CHECK_S = 1.0
SPEC_POLL_S = 0.02
HANGS_S = 12.0
KINDS_BY_LIBRARY = {
    "kafka-python": ("producer", "consumer", "group"),
    "confluent-kafka": ("producer", "consumer", "group"),
    "aiokafka": ("producer",),
    "verifiable": ("producer", "group"),
}
"""The kinds of clients by library. All other kinds use kafka-python."""


class Stop:
    """Set by SIGTERM, by SIGINT, or when the parent process (the lab) is gone."""

    def __init__(self) -> None:
        self._wakeup = WakeupPipe()
        self._parent = os.getppid()
        self._next_check = 0.0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._request())
        signal.signal(signal.SIGQUIT, lambda *_: print_stacks())

    def _request(self) -> None:
        """A client that does not end in time writes its stacks to its log."""
        self._wakeup.wake()
        faulthandler.dump_traceback_later(HANGS_S)

    def is_set(self) -> bool:
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + PARENT_CHECK_S
            if os.getppid() != self._parent:
                self._wakeup.wake()
        return self._wakeup.is_woken

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or as soon as the stop is requested."""
        self._wakeup.wait(seconds)


def handle_signal(number: signal.Signals, act: Callable[[], object]) -> None:
    """Call `act` at each signal, also for a signal that arrived before
    (`processes.SIGNALLED_KINDS`)."""
    signal.signal(number, lambda *_: act())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


def print_stacks() -> None:
    """Print each thread's stack to standard error, for `harness/stack_dumps.py`. Python prints them
    while no other thread runs; faulthandler reads frames that change, and once crashed a client."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        print(f"Thread {names.get(ident, ident)}:", file=sys.stderr)
        traceback.print_stack(frame)
    sys.stderr.flush()


def boot_id() -> str:
    """The id of the machine's boot: times are comparable only within one boot. Linux's id, else the
    second of the boot."""
    path = Path("/proc/sys/kernel/random/boot_id")
    if path.exists():
        return path.read_text().strip()
    return f"since-{int(time.time() - time.monotonic())}"


def begin(spec: ClientSpec) -> Begin:
    producing = spec.kind in ("producer", "raw", "repeater")
    transactional = spec.kind in TRANSACTIONAL
    library = (
        spec.workload.client
        if spec.kind in KINDS_BY_LIBRARY[spec.workload.client]
        else "kafka-python"
    )
    library = "confluent-kafka" if spec.kind in ("txn", "copier") else library
    return Begin(
        run=spec.run,
        client=spec.client,
        session=spec.session,
        kind=spec.kind,
        at_ns=time.monotonic_ns(),
        wall_ns=time.time_ns(),
        boot_id=boot_id(),
        pid=os.getpid(),
        library=library,
        version=kafka.VERSION if library == "verifiable" else version(library),
        topic_ids=spec.topic_ids(),
        acks=-1 if transactional else spec.workload.acks if producing else None,
        idempotent=spec.idempotent if producing or transactional else None,
        group=spec.group if spec.kind in IN_GROUP else None,
        isolation=None if producing else spec.isolation,
        transactional_id=transactional_id(spec) if transactional else None,
        instance=instance_id(spec),
    )


def run_client(work: Callable[[ClientSpec, JournalWriter, Stop], None]) -> None:
    """Main function of a client process: `... SPEC.json`.

    A client may start before its SPEC.json exists; it waits for the file. The journal gets its end
    entry only when `work` returns. An exception leaves the journal without it and goes to the log.
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    stop = Stop()
    path = Path(sys.argv[1])
    while not path.exists():
        stop.wait(SPEC_POLL_S)
        if stop.is_set():
            return
    spec = load_spec(path)
    with JournalWriter(Path(spec.journal)) as journal:
        journal.write(begin(spec))
        work(spec, journal, stop)
        journal.end(time.monotonic_ns())
