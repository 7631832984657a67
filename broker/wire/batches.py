"""Record batches of magic 2: headers, checksums, records; one place to import them from."""

from urteil.broker.wire.batch_header import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    crc_ok,
    has_transactional_bit,
    iter_batches,
    parse_header,
    set_timestamps,
)
from urteil.broker.wire.compression import Compression, UnsupportedCompression
from urteil.broker.wire.downconversion import down_convert
from urteil.broker.wire.entries import NEWEST_MAGIC, is_sole_batch, iter_entries
from urteil.broker.wire.primitives import CorruptBatch, Unforeseen
from urteil.broker.wire.records import Record, build_batch, iter_outlines, iter_records

UNREADABLE = (CorruptBatch, UnsupportedCompression)
"""What reading a batch may raise."""

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
    "Record",
    "Unforeseen",
    "UnsupportedCompression",
    "build_batch",
    "crc_ok",
    "down_convert",
    "has_transactional_bit",
    "is_sole_batch",
    "iter_batches",
    "iter_entries",
    "iter_outlines",
    "iter_records",
    "parse_header",
    "set_timestamps",
]
