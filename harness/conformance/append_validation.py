"""Questions about the validation of appended batches by a leader."""

from __future__ import annotations

from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    await_value,
    name_of,
    names,
)
from urteil.harness.conformance.records import (
    create_led_topic,
    make_batch,
    produce,
    produced_partition,
)
from urteil.harness.conformance.topics import SET, alter

SMALL, LARGE = make_batch(b"x"), make_batch(b"x" * 300)


def _produce_error(brokers: Brokers, node: int, topic: str, data: bytes) -> int:
    return int(produced_partition(produce(brokers, node, topic, 0, data)).error_code)


def _produce_sizes(brokers: Brokers, name: str) -> BrokerAnswer:
    """A batch of the permitted size, and one of one byte more."""
    leader = brokers.nodes[0]
    brokers.create(name, [[leader]], max_message_bytes=str(len(SMALL)))
    sent = (SMALL, make_batch(b"xx"), SMALL)
    return leader, names(_produce_error(brokers, leader, name, batch) for batch in sent)


def _alter_limits(brokers: Brokers, name: str) -> BrokerAnswer:
    """A leader applies changed settings, and their reset."""
    leader, _ = create_led_topic(brokers, name)

    def observe(value: str, setting: str, answer: str) -> str:
        alter(brokers, name, (setting, SET, value))
        return await_value(
            brokers, lambda: name_of(_produce_error(brokers, leader, name, LARGE)), answer
        )

    results = [
        observe(value, setting, answer)
        for setting, worse, better, error in (
            ("max.message.bytes", "200", "2000", "MessageSizeTooLarge"),
            ("message.timestamp.before.max.ms", "1000", str(1 << 62), "InvalidTimestamp"),
            ("cleanup.policy", "compact", "delete", "InvalidRecord"),
        )
        for value, answer in ((worse, error), (better, "No"))
    ]
    return leader, ", ".join(results)


def _produce_flipped_bit(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, _ = create_led_topic(brokers, name)
    flipped = LARGE[:-9] + bytes([LARGE[-9] ^ 1]) + LARGE[-8:]
    results = [
        produced_partition(produce(brokers, leader, name, 0, batch)) for batch in (flipped, LARGE)
    ]
    return leader, f"{names(result.error_code for result in results)} at {results[1].base_offset}"


APPENDS = (
    Question(
        about="batches of max.message.bytes, of one byte more, of max.message.bytes",
        answer="No, MessageSizeTooLarge, No",
        ask=_produce_sizes,
    ),
    Question(
        about="settings of a topic that are changed and reset: largest batch, oldest timestamp, "
        "compaction",
        answer="MessageSizeTooLarge, No, InvalidTimestamp, No, InvalidRecord, No",
        ask=_alter_limits,
    ),
    Question(
        about="a batch with a flipped bit, and the correct one",
        answer="CorruptRecord, No at 0",
        ask=_produce_flipped_bit,
    ),
)
