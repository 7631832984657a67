"""The common main function of all client processes: start, first journal entry, and end."""

from __future__ import annotations

import logging
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

from urteil.harness.clients.kind import ClientKind
from urteil.harness.clients.libraries import JAVA, VERIFIABLE
from urteil.harness.clients.spec import ClientSpec, load_spec, transactional_id
from urteil.harness.clients.stop import stop_on_signals
from urteil.harness.dependencies import java_client, kafka
from urteil.harness.evidence.journal import Begin, JournalWriter

SPEC_POLL_S = 0.02


def boot_id() -> str:
    """The id of the machine's boot: times are comparable only within one boot. Linux's id, else the
    second of the boot."""
    path = Path("/proc/sys/kernel/random/boot_id")
    if path.exists():
        return path.read_text().strip()
    return f"since-{int(time.time() - time.monotonic())}"


def _version(library: str) -> str:
    releases = {VERIFIABLE: kafka.VERSION, JAVA: java_client.VERSION}
    return releases.get(library) or version(library)


def begin(spec: ClientSpec, kind: ClientKind) -> Begin:
    """The first entry of a client's journal."""
    is_transactional, is_producer = kind.is_transactional, kind.is_producer
    library = kind.library(spec.workload)
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
        version=_version(library),
        topic_ids=spec.topic_ids(),
        acks=-1 if is_transactional else spec.workload.acks if is_producer else None,
        idempotent=spec.idempotent if is_producer or is_transactional else None,
        group=spec.group,
        isolation=None if is_producer else spec.isolation,
        transactional_id=transactional_id(spec) if is_transactional else None,
        instance=spec.instance,
    )


def run_client(kind: ClientKind) -> None:
    """Main function of a client process: `... SPEC.json`.

    A client may start before its SPEC.json exists; it waits for the file. The journal gets its end
    entry only when the client's work returns. An exception leaves the journal without it and goes
    to the log.
    """
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    assert kind.work is not None
    stop = stop_on_signals()
    path = Path(sys.argv[1])
    while not path.exists():
        stop.wait(SPEC_POLL_S)
        if stop.is_set():
            return
    spec = load_spec(path)
    with JournalWriter(Path(spec.journal)) as journal:
        journal.write(begin(spec, kind))
        kind.work(spec, journal, stop)
        journal.end(time.monotonic_ns())
