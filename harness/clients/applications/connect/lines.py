"""A record as a line of text, the form that connectors carry: `compose/connect/src/.../Line.java`
writes and reads it."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from urteil.harness.clients.payload import decode


class Line(NamedTuple):
    """A line: where its record was read, and the record's value id, None for no payload."""

    topic: str
    partition: int
    offset: int
    value_id: str | None

    @property
    def place(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


def read_line(run: str, text: str) -> Line | None:
    """The record of a line; None for a damaged one."""
    words = text.split(" ")
    if len(words) != 5:
        return None
    try:
        partition, offset = int(words[1]), int(words[2])
        key, value = (_decode(word) for word in words[3:])
    except (ValueError, binascii.Error):
        return None
    return Line(words[0], partition, offset, decode(run, value, key).value_id)


def _decode(word: str) -> bytes | None:
    return None if word == "-" else base64.b64decode(word, validate=True)
