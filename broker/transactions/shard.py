"""The content of one partition of `__transaction_state`: transactional ids and their states."""

from __future__ import annotations

import logging
import struct

from urteil.broker.transactions.records import decode_key, decode_value
from urteil.broker.transactions.transaction import Transaction
from urteil.broker.wire.batches import UNREADABLE, Record, iter_stored_records
from urteil.broker.wire.primitives import WireError

log = logging.getLogger("transactions")


class Shard:
    """The transactions of one partition while this broker leads it. The partition's leader epoch is
    the coordinator epoch."""

    def __init__(self, partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.is_loaded = False
        self.transactions: dict[str, Transaction] = {}

    def load(self, batch: memoryview) -> None:
        """Apply the records of one batch of the log.

        An unreadable record, or the rest of an unreadable batch, is logged and skipped, so that the
        other transactional ids of the partition stay available.
        """
        try:
            for record in iter_stored_records(batch):
                self._load(record)
        except UNREADABLE as error:
            log.error("__transaction_state-%d: the rest of a batch: %s", self.partition, error)

    def _load(self, record: Record) -> None:
        try:
            self._replay(record.key, record.value)
        except (WireError, ValueError, struct.error) as error:
            log.error("__transaction_state-%d@%d: %s", self.partition, record.offset, error)

    def _replay(self, key: bytes | None, value: bytes | None) -> None:
        transactional_id = None if key is None else decode_key(key)
        if transactional_id is None:
            return
        if value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = Transaction(decode_value(value))
