"""Zigzag varints of records (source: KIP-98 and `ByteUtils`)."""

from __future__ import annotations

from urteil.broker.wire.primitives import Buffer, CorruptBatch


def put_varint(out: bytearray, value: int) -> None:
    """Append a signed integer of at most 64 bits, zigzag, low groups first."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: Buffer, pos: int) -> tuple[int, int]:
    """Read a signed integer of at most 32 bits; IndexError past the end of the data."""
    value = data[pos]  # fast path: most have one or two bytes
    if value < 0x80:
        return (value >> 1) ^ -(value & 1), pos + 1
    second = data[pos + 1]
    if second < 0x80:
        value = value & 0x7F | second << 7
        return (value >> 1) ^ -(value & 1), pos + 2
    return _read(data, pos, 32)


def read_varlong(data: Buffer, pos: int) -> tuple[int, int]:
    """Read a signed integer of at most 64 bits; IndexError past the end of the data."""
    value = data[pos]
    if value < 0x80:
        return (value >> 1) ^ -(value & 1), pos + 1
    return _read(data, pos, 64)


def _read(data: Buffer, pos: int, bits: int) -> tuple[int, int]:
    value = data[pos]
    pos += 1
    if value > 0x7F:
        value &= 0x7F
        shift = 7
        while True:
            byte = data[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= bits:
                raise CorruptBatch(f"varint too long for {bits} bits")
        if value >> bits:
            raise CorruptBatch(f"varint exceeds {bits} bits")
    return (value >> 1) ^ -(value & 1), pos
