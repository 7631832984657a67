"""A minimal DER parser (X.690), for key stores and names."""

from __future__ import annotations

from collections.abc import Iterator

SEQUENCE, OCTET_STRING, OBJECT_IDENTIFIER = 0x30, 0x04, 0x06


def read(data: bytes, at: int = 0) -> tuple[int, bytes, int]:
    """Return tag and content of the value at `at`, and its end. Raises ValueError."""
    try:
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[at : at + count], "big")
            at += count
    except IndexError:
        raise ValueError("truncated DER") from None
    if at + size > len(data):
        raise ValueError(f"DER value of {size} bytes where {len(data) - at} are left")
    return tag, data[at : at + size], at + size


def values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of consecutive values."""
    at = 0
    while at < len(data):
        tag, content, at = read(data, at)
        yield tag, content


def content_of(data: bytes, tag: int) -> bytes:
    """Return the content of a value with the given tag. Raises ValueError."""
    actual, content, _ = read(data)
    if actual != tag:
        raise ValueError(f"DER tag {actual:#x} where {tag:#x} belongs")
    return content


def object_identifier(content: bytes) -> str:
    """Format an object identifier: `1.2.840.113549`."""
    arcs, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(value)
            value = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))
