"""What all client processes share: their start, their journal's first entry, and their end."""

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
CHOSEN = {
    "kafka-python": ("producer", "consumer", "group"),
    "confluent-kafka": ("producer", "consumer", "group"),
    "aiokafka": ("producer",),
    "verifiable": ("producer", "group"),
}
"""Library to the kinds of clients that it is used for; the others are kafka-python's."""


class Stop:
    """Set by SIGTERM, by SIGINT, or when the lab that started this client is gone."""

    def __init__(self) -> None:
        self._wakeup = WakeupPipe()
        self._parent = os.getppid()
        self._next_check = 0.0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ask())
        signal.signal(signal.SIGQUIT, lambda *_: tell_stacks())

    def _ask(self) -> None:
        """One that does not end then tells in its log where it hangs."""
        self._wakeup.wake()
        faulthandler.dump_traceback_later(HANGS_S)

    def asked(self) -> bool:
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + PARENT_CHECK_S
            if os.getppid() != self._parent:
                self._wakeup.wake()
        return self._wakeup.is_woken

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or as soon as the end is asked for."""
        self._wakeup.wait(seconds)


def hear(number: signal.Signals, act: Callable[[], object]) -> None:
    """Do this whenever that signal comes, also if it came before (`processes.HEARING`)."""
    signal.signal(number, lambda *_: act())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


def tell_stacks() -> None:
    """Write each thread's stack to standard error, for `harness/stack_dumps.py`.

    Python itself writes it while no other thread runs: faulthandler reads frames that change, and
    has crashed a client by it.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        print(f"Thread {names.get(ident, ident)}:", file=sys.stderr)
        traceback.print_stack(frame)
    sys.stderr.flush()


def boot_id() -> str:
    """Times are comparable among clients of one boot only. Linux's id, else the boot's second."""
    path = Path("/proc/sys/kernel/random/boot_id")
    if path.exists():
        return path.read_text().strip()
    return f"since-{int(time.time() - time.monotonic())}"


def begin(spec: ClientSpec) -> Begin:
    producing = spec.kind in ("producer", "raw", "repeater")
    transactional = spec.kind in TRANSACTIONAL
    library = spec.workload.client if spec.kind in CHOSEN[spec.workload.client] else "kafka-python"
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

    A client may be started before its SPEC.json is there and waits for it then. Its journal ends
    properly only when `work` returned; an exception leaves it without an end and goes to the log.
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    stop = Stop()
    path = Path(sys.argv[1])
    while not path.exists():
        stop.wait(SPEC_POLL_S)
        if stop.asked():
            return
    spec = load_spec(path)
    with JournalWriter(Path(spec.journal)) as journal:
        journal.write(begin(spec))
        work(spec, journal, stop)
        journal.end(time.monotonic_ns())
