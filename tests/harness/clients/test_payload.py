"""Payloads identify their send and detect every damage."""

from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from tests.broker.log.old_folders import Row, old_messages
from urteil.harness.clients.payload import FOREIGN, Encoder, client_timestamp_ms, decode, key_text

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=20)
KEYS = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)


@given(NAMES, NAMES, st.integers(0, 2**63), KEYS, st.integers(0, 10_000), HEADERS,
       st.integers(0, 2_000))  # fmt: skip
def test_value_identifies_its_send(run, client, sequence, key, partition, headers, size):
    encoder = Encoder(run, client, size)
    value = encoder.encode(sequence, key, partition, 5, headers)
    payload = decode(run, value, key, headers)
    assert payload.value_id == f"{run}/{client}/{sequence}" == encoder.value_id(sequence)
    assert payload.intact
    assert (payload.partition, payload.client, payload.sequence) == (partition, client, sequence)
    assert len(value) == max(size, 30 + len(run) + len(client))


@given(st.integers(0, 99), st.integers(1, 255))
def test_every_changed_byte_is_detected(position, change):
    value = bytearray(Encoder("r1", "p1", 100).encode(7, b"k", 2, 5))
    value[position] ^= change
    assert not decode("r1", bytes(value), b"k").intact


@given(st.binary(max_size=200), KEYS)
def test_decoding_never_raises(value, key):
    assert not decode("r1", value, key).intact


def test_checksum_covers_key_headers_and_length():
    value = Encoder("r1", "p1", 60).encode(1, b"key", 0, 5, [("h", b"1")])
    assert decode("r1", value, b"key", [("h", b"1")]).intact
    assert not decode("r1", value, b"other", [("h", b"1")]).intact
    assert not decode("r1", value, None, [("h", b"1")]).intact
    assert not decode("r1", value, b"key", []).intact
    assert not decode("r1", value, b"key", [("h", None)]).intact
    assert not decode("r1", value[:-1], b"key", [("h", b"1")]).intact
    assert not decode("r1", value, b"keyh", [("", b"1")]).intact


def test_values_of_other_runs_and_other_writers():
    value = Encoder("other", "p1", 60).encode(1, None, 0, 5)
    assert decode("r1", value, None).value_id == FOREIGN
    assert decode("r1", None, b"k").value_id is None
    assert decode("r1", b"hello", None).value_id is None


def test_any_key_becomes_text():
    assert key_text(b"k1") == "k1"
    assert key_text(None) is None
    assert key_text(b"\xff") == "\\xff"


def test_tombstone_identifies_its_send_in_a_header():
    headers = Encoder("r1", "p1", 60).tombstone(7, b"k", 2, 5)
    payload = decode("r1", None, b"k", headers)
    assert (payload.value_id, payload.intact, payload.partition) == ("r1/p1/7", True, 2)
    assert not decode("r1", None, b"other", headers).intact
    assert not decode("r1", None, b"k", [*headers, ("more", b"")]).intact
    assert not decode("r1", b"", b"k", headers).intact
    assert decode("r1", None, b"k", []).value_id is None


def test_timestamp_must_be_the_sent_one():
    value = Encoder("r1", "p1", 60).encode(7, b"k", 2, 1_000)
    assert decode("r1", value, b"k", (), 1_000).intact
    assert decode("r1", value, b"k").intact  # the broker's own
    assert not decode("r1", value, b"k", (), 1_001).intact
    assert decode("r1", value, b"k", (), 1_001).value_id == "r1/p1/7"


def test_message_of_magic_0_without_timestamp_is_intact():
    row = Row(0, -1, b"k", Encoder("r", "c", 60).encode(0, b"k", 0, 7))
    (record,) = MemoryRecords(old_messages(0, 0, [row])).next_batch()
    assert client_timestamp_ms(record) is None
    assert decode("r", record.value, record.key, (), client_timestamp_ms(record)).intact
