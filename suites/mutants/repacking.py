"""Changes of the records in batches that the broker compresses again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

RecordFields = tuple[bytes | None, bytes | None, Sequence[Any], int]


def change_repacked(mark: Mark, change: Callable[[list[RecordFields]], list[RecordFields]]) -> None:
    """Replace the records of each batch by `change(records)`, and mark each difference."""
    from urteil.broker.wire.batches import build_batch, iter_records, parse_header

    def make(original: Function) -> Function:
        def recompress(header: Any, batch: Any, newest_ms: int, codec: int, config: Any) -> Any:
            anew = yield from original(header, batch, newest_ms, codec, config)
            if not isinstance(anew, bytearray):
                return anew
            right: list[RecordFields] = [
                (record.key, record.value, record.headers, record.timestamp_ms)
                for record in iter_records(anew)
            ]
            wrong = change(right)
            if wrong == right:
                return anew
            mark.hit()
            written = parse_header(anew)
            return bytearray(
                build_batch(
                    wrong,
                    producer_id=written.producer_id,
                    producer_epoch=written.producer_epoch,
                    base_sequence=written.base_sequence,
                    compression=codec,
                    transactional=written.is_transactional,
                    level=config.level_of(codec),
                )
            )

        return recompress

    replace("urteil.broker.log.append_validation:recompress", make)
