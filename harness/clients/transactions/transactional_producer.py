"""A transactional client: it writes to several partitions and reads, in one transaction.

    python -m urteil.harness.clients.transactions.transactional_producer SPEC.json

Record n is due n / rate seconds after the start. A transaction has one to `txn_records` records; a
share of them (`aborts`) is aborted on purpose. Between two records the client reads the records
that others have committed. The transaction ends `hold_ms` after its last record. A client that
another one with its transactional id has fenced waits for a moment and initialises the id again.
The history of these transactions shows whether they were atomic and isolated (`g0` to `g_single`).
"""

from __future__ import annotations

import random
import time
from typing import Annotated

from msgspec import Meta

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage, Writes
from urteil.harness.clients.libraries import CONFLUENT, JAVA
from urteil.harness.clients.libraries.confluent_consumer import Reader
from urteil.harness.clients.options import (
    FetchOptions,
    OutcomeOptions,
    SendOptions,
    TransactionOptions,
    WorkloadOptions,
)
from urteil.harness.clients.producers.produced_records import KeyChooser
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.transactions.journaled_transactions import Transactions
from urteil.harness.evidence.journal import JournalWriter
from urteil.harness.scenario import Scenario


class WriterOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    txn_records: Annotated[
        int, Meta(ge=1, le=100_000, description="The largest number of records of a transaction.")
    ] = 8
    hold_ms: Annotated[
        float,
        Meta(
            ge=0, le=3_600_000, description="The time from a transaction's last record to its end."
        ),
    ] = 0.0


class TransactionalProducer:
    """Runs one transaction after another."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        options = WriterOptions.of(spec.workload)
        self._stop = stop
        self._rate = max(0.1, spec.rate_records_per_s)
        self._most = options.txn_records
        self._aborts = OutcomeOptions.of(spec.workload).aborts
        self._hold_s = options.hold_ms / 1000
        self._random = random.Random(spec.seed)
        self._slots = [(t.name, p) for t in spec.topics[:1] for p in range(t.partitions)]
        self._keys = KeyChooser(spec.workload.keys, len(self._slots), spec.seed)
        self._transactions = Transactions(spec, journal)
        self._reader = Reader(spec, journal)
        self._sent, self._began = 0, 0.0

    def run(self) -> None:
        """Run transactions until the stop is requested."""
        self._reader.start(self._stop)
        self._began = time.monotonic()
        self._transactions.run(self._stop, self._fill)
        self._reader.close()

    def _fill(self, txn: int) -> bool:
        """Records and reads of one transaction. Returns whether it is to be committed."""
        for _ in range(self._random.randint(1, self._most)):
            self._reader.step(self._stop, txn, wait_s=0.0)
            slot = self._random.randrange(len(self._slots))
            if not self._transactions.send(*self._slots[slot], self._keys.key(slot)):
                break
            self._sent += 1
            self._stop.wait(max(0.0, self._began + self._sent / self._rate - time.monotonic()))
        if self._hold_s:
            self._stop.wait(self._hold_s)
        return self._random.random() >= self._aborts


def write(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    TransactionalProducer(spec, journal, stop).run()


def _count(scenario: Scenario) -> int:
    load = scenario.workload
    return load.producers if load.kind == "transactions" else 0


KIND = ClientKind(
    name="txn",
    about="Writes to several partitions and reads committed records, in transactions.",
    stage=Stage.LOAD,
    judged_by=("torn_txn", "g0", "g1c", "g_single"),
    prefix="t",
    count=_count,
    work=write,
    options=(WriterOptions, OutcomeOptions, TransactionOptions, SendOptions, FetchOptions),
    libraries=(CONFLUENT, JAVA),
    writes=Writes.IN_TRANSACTIONS,
    has_rate=True,
)

if __name__ == "__main__":
    run_client(KIND)
