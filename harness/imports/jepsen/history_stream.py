"""The values of a history file as a stream, in constant memory.

A history is one operation after the other, or one vector of them, as text or packed by gzip, in
UTF-8 or, with a byte order mark, in UTF-16. `fast_reader` reads runs of operations in their common
form, the general reader everything else.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from urteil.harness.imports.jepsen.edn import CLOSE, END, EdnError, place, read
from urteil.harness.imports.jepsen.fast_reader import FastReader

CHUNK = 1 << 18
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BETWEEN = re.compile(r"(?:[\s,]+|;[^\n]*|\#![^\n]*)*+", re.ASCII)
_OPENS = {"[": "]", "(": ")"}


class Stream:
    """The operations of a file in order, and the place of the last one."""

    def __init__(self, path: Path, *, quick: bool = True) -> None:
        self._chunks = _texts(path)
        self._quick = FastReader() if quick else None
        self._text, self._at, self._ended = "", 0, False
        self._line, self._column = 1, 0
        self._last = 0
        self._closes = ""

    def place(self) -> str:
        """Line and column of the last value."""
        return self._place(self._last)

    def values(self) -> Iterator[tuple[list[Any], bool]]:
        """Some values, and whether the fast reader read and checked them.

        Raises EdnError for a damaged text.
        """
        self._extend()
        while True:
            if self._quick is not None:
                end = self._quick.run(self._text, self._at)
                if end > self._at:
                    yield from self._read_run(self._quick, end)
            if len(self._text) - self._at < CHUNK // 4 and self._extend():
                continue
            if self._skip():
                continue
            value = self._read_general()
            if value is END:
                return
            if value is not CLOSE:
                if self._quick is not None:
                    self._quick.learn(value)
                yield [value], False

    def _read_run(self, quick: FastReader, end: int) -> Iterator[tuple[list[Any], bool]]:
        begin = self._at
        for operations, at in quick.operations(self._text[begin:end]):
            self._last = begin + at
            if operations:
                yield operations, True
            else:
                value, _ = self._read(self._last)
                quick.learn(value)
                yield [value], False
        self._at = end

    def _skip(self) -> bool:
        """Skip comments and the bracket that opens a vector of operations. Returns whether there
        were any."""
        at = self._begin()
        if at == len(self._text):
            return False
        if not self._closes and self._text[at] in _OPENS:
            self._closes, self._last = _OPENS[self._text[at]], at
            at += 1
        elif ";" not in self._text[self._at : at]:
            return False
        self._at = at
        return True

    def _begin(self) -> int:
        """The begin of the next value, behind spaces and comments."""
        match = _BETWEEN.match(self._text, self._at)
        return match.end() if match else self._at

    def _read_general(self) -> Any:
        """The next value, with as much text as it needs."""
        while True:
            try:
                value, end = self._read(self._at)
            except EdnError as error:
                if error.is_incomplete and self._extend():
                    continue
                raise
            cut = end == len(self._text) and self._text[-1:] not in ("}", "]", ")", '"', "\n")
            if (cut or value is END) and self._extend():
                continue
            break
        if value is CLOSE and self._text[end - 1] != self._closes:
            raise self._error(end - 1, f"a vector closed by {self._text[end - 1]}; expected "
                                       f"{self._closes}")  # fmt: skip
        if value is END and self._closes:
            raise self._error(end, f"the vector of operations is never closed; add its "
                                   f"{self._closes}")  # fmt: skip
        self._closes = "" if value is CLOSE else self._closes
        self._last, self._at = self._begin(), end
        return value

    def _read(self, at: int) -> tuple[Any, int]:
        try:
            return read(self._text, at, within=bool(self._closes))
        except EdnError as error:
            raise self._error(error.at, error.what, is_incomplete=error.is_incomplete) from None

    def _error(self, at: int, what: str, *, is_incomplete: bool = False) -> EdnError:
        return EdnError(self._place(at), what, at=at, is_incomplete=is_incomplete)

    def _place(self, at: int) -> str:
        return place(self._text, at, self._line, self._column)

    def _extend(self) -> bool:
        """Append a chunk to the remaining text, at least as long as it. False at the end."""
        if self._ended:
            return False
        left = self._text[self._at :]
        pieces, size = [left], 0
        while size < max(CHUNK, len(left)):
            piece = next(self._chunks, None)
            if piece is None:
                self._ended = True
                break
            pieces.append(piece)
            size += len(piece)
        lines = self._text.count("\n", 0, self._at)
        begin = self._text.rfind("\n", 0, self._at) + 1
        self._column = self._at - begin + (0 if lines else self._column)
        self._line += lines
        self._last = max(0, self._last - self._at)
        self._text, self._at = "".join(pieces), 0
        return size > 0


def _texts(path: Path) -> Iterator[str]:
    """The bytes of a file, unpacked and in UTF-8, as Latin-1."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        first = file.read(CHUNK)
        mark, coding = next(
            (byte_order_mark for byte_order_mark in _MARKS if first.startswith(byte_order_mark[0])),
            (b"", "utf-8"),
        )
        pieces = iter(lambda: file.read(CHUNK), b"")
        if coding == "utf-8":
            yield first[len(mark) :].decode("latin-1")
            for piece in pieces:
                yield piece.decode("latin-1")
            return
        decoder = codecs.getincrementaldecoder(coding)()
        yield _latin(decoder.decode(first[len(mark) :]))
        for piece in pieces:
            yield _latin(decoder.decode(piece))
        yield _latin(decoder.decode(b"", final=True))


def _latin(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")
