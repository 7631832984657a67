"""Questions about what a leader lets into a log."""

from __future__ import annotations

from urteil.harness.conformance.question import Brokers, Question, awaited, name_of, names
from urteil.harness.conformance.records import appended, batch, led, produce
from urteil.harness.conformance.topics import SET, alter

Told = tuple[int, str]
SMALL, LARGE = batch(b"x"), batch(b"x" * 300)


def _error(brokers: Brokers, node: int, topic: str, data: bytes) -> int:
    return int(appended(produce(brokers, node, topic, 0, data)).error_code)


def _size(brokers: Brokers, name: str) -> Told:
    """As large as may be, and larger by one byte."""
    leader = brokers.nodes[0]
    brokers.create(name, [[leader]], max_message_bytes=str(len(SMALL)))
    sent = (SMALL, batch(b"xx"), SMALL)
    return leader, names(_error(brokers, leader, name, one) for one in sent)


def _changed(brokers: Brokers, name: str) -> Told:
    """A leader heeds a setting that was changed while it leads, and that it was set back."""
    leader, _ = led(brokers, name)

    def told(value: str, setting: str, answer: str) -> str:
        alter(brokers, name, (setting, SET, value))
        return awaited(lambda: name_of(_error(brokers, leader, name, LARGE)), answer)

    found = [
        told(value, setting, answer)
        for setting, worse, better, error in (
            ("max.message.bytes", "200", "2000", "MessageSizeTooLarge"),
            ("message.timestamp.before.max.ms", "1000", str(1 << 62), "InvalidTimestamp"),
            ("cleanup.policy", "compact", "delete", "InvalidRecord"),
        )
        for value, answer in ((worse, error), (better, "No"))
    ]
    return leader, ", ".join(found)


def _flipped(brokers: Brokers, name: str) -> Told:
    leader, _ = led(brokers, name)
    flipped = LARGE[:-9] + bytes([LARGE[-9] ^ 1]) + LARGE[-8:]
    told = [appended(produce(brokers, leader, name, 0, one)) for one in (flipped, LARGE)]
    return leader, f"{names(one.error_code for one in told)} at {told[1].base_offset}"


APPENDS = (
    Question(
        about="batches of max.message.bytes, of a byte more, of max.message.bytes",
        answer="No, MessageSizeTooLarge, No",
        ask=_size,
    ),
    Question(
        about="settings that a leader is given, and that are set back: largest batch, oldest time, "
        "compaction",
        answer="MessageSizeTooLarge, No, InvalidTimestamp, No, InvalidRecord, No",
        ask=_changed,
    ),
    Question(
        about="a batch in which a bit was flipped, and one as it was",
        answer="CorruptRecord, No at 0",
        ask=_flipped,
    ),
)
