"""Record batches of magic 2: headers, checksums, records; one place to import them from."""

from urteil.broker.wire.batch_header import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    crc_ok,
    iter_batches,
    magic_of,
    parse_header,
    set_base_offset_and_epoch,
    set_log_append_time,
)
from urteil.broker.wire.compression import Compression, UnsupportedCompression
from urteil.broker.wire.legacy import convert_legacy, down_convert, needs_conversion
from urteil.broker.wire.primitives import CorruptBatch
from urteil.broker.wire.records import Record, build_batch, iter_records

__all__ = [
    "HEADER_BYTES",
    "LOG_OVERHEAD_BYTES",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "BatchHeader",
    "Compression",
    "CorruptBatch",
    "Record",
    "UnsupportedCompression",
    "build_batch",
    "convert_legacy",
    "crc_ok",
    "down_convert",
    "iter_batches",
    "iter_records",
    "magic_of",
    "needs_conversion",
    "parse_header",
    "set_base_offset_and_epoch",
    "set_log_append_time",
]
