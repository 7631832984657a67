"""Record batches: headers, checksums, records. Other packages import them from here.

`iter_stored`, `read_header`, `iter_stored_records` and `is_crc_valid` accept every magic, the other
functions magic 2.
"""

from urteil.broker.wire.batch_header import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    has_transactional_bit,
    iter_batches,
    parse_header,
    set_timestamps,
)
from urteil.broker.wire.compression import Compression, UnsupportedCompression
from urteil.broker.wire.downconversion import down_convert
from urteil.broker.wire.primitives import CorruptBatch, KafkaServerError, TooLarge
from urteil.broker.wire.produce_entries import NEWEST_MAGIC, is_sole_batch, iter_entries
from urteil.broker.wire.records import Record, build_batch, iter_outlines, iter_records
from urteil.broker.wire.stored_batches import (
    first_offset,
    is_crc_valid,
    iter_stored,
    iter_stored_records,
    read_header,
)

UNREADABLE = (CorruptBatch, UnsupportedCompression)
"""The exceptions of reading a batch."""

__all__ = [
    "HEADER_BYTES",
    "LOG_OVERHEAD_BYTES",
    "NEWEST_MAGIC",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "UNREADABLE",
    "BatchHeader",
    "Compression",
    "CorruptBatch",
    "KafkaServerError",
    "Record",
    "TooLarge",
    "UnsupportedCompression",
    "build_batch",
    "down_convert",
    "first_offset",
    "has_transactional_bit",
    "is_crc_valid",
    "is_sole_batch",
    "iter_batches",
    "iter_entries",
    "iter_outlines",
    "iter_records",
    "iter_stored",
    "iter_stored_records",
    "parse_header",
    "read_header",
    "set_timestamps",
]
