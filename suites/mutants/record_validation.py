"""Validation of produced records and conversion of formats."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.repacking import change_repacked
from urteil.suites.mutants.unsimulated import INVALID_REQUESTS, RECOMPRESSION


@mutant(
    about="a batch with a wrong CRC is appended and served",
    models="no validation of produced batches",
    scenario="corrupt-client",
    guarantee="corrupt",
    unsimulated="no fault damages requests on their way",
)
def no_crc_check(mark: Mark) -> None:
    """Accepts every CRC."""

    def make(original: Function) -> Function:
        def is_crc_valid(batch: Any) -> bool:
            if not original(batch):
                mark.hit()
            return True

        return is_crc_valid

    replace("urteil.broker.log.batch_checks:is_crc_valid", make)


@mutant(
    about="a batch that the broker compresses again has one timestamp for all records",
    models="timestamp deltas that are lost in a conversion",
    scenario="rewritten",
    guarantee="corrupt",
    unsimulated=RECOMPRESSION,
)
def repacked_at_one_time(mark: Mark) -> None:
    """Gives all records of the batch the timestamp of the first one."""
    change_repacked(mark, lambda records: [(*record[:3], records[0][3]) for record in records])


@mutant(
    about="a batch that the broker compresses again loses its record headers",
    models="a conversion of keys and values only",
    scenario="rewritten",
    guarantee="corrupt",
    unsimulated=RECOMPRESSION,
)
def repacked_without_headers(mark: Mark) -> None:
    """Removes the headers of all records."""
    change_repacked(mark, lambda records: [(*record[:2], (), record[3]) for record in records])


@mutant(
    about="a batch that is converted for an old consumer loses its last record",
    models="a loop over the records of a batch that ends one too early",
    scenario="old-clients",
    guarantee="poll_skip",
    unsimulated="no client sends old versions of requests",
)
def down_conversion_drops_last(mark: Mark) -> None:
    """Drops the last record of each converted batch of three or more."""

    def make(original: Function) -> Function:
        def records(batch: Any) -> list[Any]:
            result = list(original(batch))
            if len(result) > 2:
                mark.hit()
                del result[-1]
            return result

        return records

    replace("urteil.broker.wire.downconversion:iter_stored_records", make)


@mutant(
    about="a batch larger than max.message.bytes is appended",
    models="a topic limit that the leader ignores",
    scenario="corrupt-client",
    guarantee="corrupt",
    unsimulated=INVALID_REQUESTS,
)
def size_unlimited(mark: Mark) -> None:
    """Uses each batch's own size as the limit."""

    def make(original: Function) -> Function:
        def check_batch(magic: int, entry: Any, config: Any, *, from_client: bool) -> Any:
            if len(entry) > config.max_message_bytes:
                mark.hit()
                config = changed(config, max_message_bytes=len(entry))
            return original(magic, entry, config, from_client=from_client)

        return check_batch

    replace("urteil.broker.log.batch_checks:check_batch", make)


@mutant(
    about="a record whose timestamp is outside the topic's limits is appended",
    models="KIP-937: limits that the leader ignores",
    scenario="corrupt-client",
    guarantee="corrupt",
    unsimulated=INVALID_REQUESTS,
)
def times_unlimited(mark: Mark) -> None:
    """Accepts every timestamp."""

    def make(original: Function) -> Function:
        def accept_all(errors: Any) -> Any:
            if original(errors) is not None:
                mark.hit()
            return None

        return accept_all

    replace("urteil.broker.log.record_errors:RecordErrors.rejection", make)


@mutant(
    about="batches keep their producer's codec, whatever compression.type of the topic is",
    models="compression.type that is not applied",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def codec_not_applied(mark: Mark) -> None:
    """Reports the codec of every batch as the topic's."""

    def make(original: Function) -> Function:
        def codec(config: Any, came_in: int) -> int:
            if original(config, came_in) != came_in:
                mark.hit()
            return came_in

        return codec

    replace("urteil.broker.log.log_config:LogConfig.codec_for", make)


@mutant(
    about="a batch that the broker compresses again has empty values in place of nulls",
    models="null and empty values confused: tombstones that delete nothing",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def nulls_packed_as_empty(mark: Mark) -> None:
    """Writes null values as empty ones when a batch is compressed again."""
    change_repacked(
        mark,
        lambda records: [
            (key, value or b"", headers, time_ms) for key, value, headers, time_ms in records
        ],
    )


@mutant(
    about="records of a LogAppendTime topic keep their client's timestamps, whatever the "
    "answer says",
    models="KIP-32: a batch appended unchanged",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def log_append_time_ignored(mark: Mark) -> None:
    """Accepts a LogAppendTime batch as it is."""

    def make(original: Function) -> Function:
        def set_timestamps(batch: Any, max_timestamp: int, *, of_broker: bool) -> None:
            if of_broker:
                mark.hit()
            else:
                original(batch, max_timestamp, of_broker=False)

        return set_timestamps

    replace("urteil.broker.log.append_validation:set_timestamps", make)
