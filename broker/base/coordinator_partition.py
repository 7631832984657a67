"""The partition of an internal topic that holds a group or a transactional id."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 units, in 32 bits with a sign."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partitions: int) -> int:
    """The partition whose leader coordinates `key`; abs(MIN_VALUE) is 0, as in Kafka."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
