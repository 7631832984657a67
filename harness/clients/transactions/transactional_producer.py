"""A transactional client: it writes to several partitions and reads, in one transaction.

    python -m urteil.harness.clients.transactions.transactional_producer SPEC.json

Record n is due n / rate seconds after the start. A transaction has one to `txn_records` (8)
records; a share of them (`aborts`, 0.25) is aborted on purpose. Between two records the client
reads the records that others have committed. The transaction ends `hold_ms` (0) after its last
record. A client that another one with its transactional id has fenced waits for a moment and
initialises the id again.
"""

from __future__ import annotations

import random
import time

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.consumers.confluent_consumer import Reader
from urteil.harness.clients.producers.produced_records import KeyChooser
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.transactions.journaled_transactions import Transactions
from urteil.harness.evidence.journal import JournalWriter

RECORDS = "8"
ABORTS = "0.25"
RETRY_S = 0.2
FENCED_WAIT_S = 1.0


class TransactionalProducer:
    """Runs one transaction after another."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        options = spec.workload.options
        self._stop = stop
        self._rate = max(0.1, spec.rate_records_per_s)
        self._most = int(options.get("txn_records", RECORDS))
        self._aborts = float(options.get("aborts", ABORTS))
        self._hold_s = float(options.get("hold_ms", "0")) / 1000
        self._random = random.Random(spec.seed)
        self._slots = [(t.name, p) for t in spec.topics[:1] for p in range(t.partitions)]
        self._keys = KeyChooser(spec.workload.keys, len(self._slots), spec.seed)
        self._transactions = Transactions(spec, journal)
        self._reader = Reader(spec, journal)
        self._sent = 0

    def run(self) -> None:
        """Run transactions until the stop is requested."""
        self._reader.start(self._stop)
        began = time.monotonic()
        while not self._stop.is_set():
            if not self._transactions.ensure_ready():
                self._stop.wait(RETRY_S)
            elif self._transaction(began) in ("fenced", "unknown"):
                self._stop.wait(FENCED_WAIT_S)
        self._reader.close()

    def _transaction(self, began: float) -> str:
        txn = self._transactions.begin()
        if txn is None:
            return "fenced"
        for _ in range(self._random.randint(1, self._most)):
            self._reader.step(self._stop, txn, wait_s=0.0)
            slot = self._random.randrange(len(self._slots))
            if not self._transactions.send(*self._slots[slot], self._keys.key(slot)):
                break
            self._sent += 1
            self._stop.wait(max(0.0, began + self._sent / self._rate - time.monotonic()))
        if self._hold_s:
            self._stop.wait(self._hold_s)
        return self._transactions.end(commit=self._random.random() >= self._aborts)


def write(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    TransactionalProducer(spec, journal, stop).run()


if __name__ == "__main__":
    run_client(write)
