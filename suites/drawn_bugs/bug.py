"""A drawn bug: one edit of one source file of the broker."""

from __future__ import annotations

import difflib
import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

SUFFIX = ".json"


class StaleBug(ValueError):
    """The source file is not the version from which the bug was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBug:
    """The text from `start` to `end` of `file` becomes `text`.

    `slip` is its kind, `line` the first changed line of the changed source, `function` the
    function or class around it, `digest` the version of the file that it was drawn from.
    """

    name: str
    room: str
    slip: str
    file: str
    function: str
    line: int
    start: int
    end: int
    text: str
    digest: str
    diff: str

    def change(self, source: str) -> str:
        """The source with the bug. Raises StaleBug for another version of the file."""
        if digest_of(source) != self.digest:
            raise StaleBug(f"{self.file} changed since the bug {self.name} was drawn: draw again")
        return source[: self.start] + self.text + source[self.end :]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")


def digest_of(source: str) -> str:
    return f"{zlib.crc32(source.encode()):08x}"


def load_bug(path: Path) -> DrawnBug:
    """Raises ValueError if the file is not a drawn bug."""
    try:
        return DrawnBug(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is not a drawn bug: {error}") from None


def make_bug(
    *, room: str, slip: str, file: str, function: str, source: str, changed: str
) -> DrawnBug:
    """The bug that makes `changed` of `source`. Its name is the same as long as the changed lines
    and their function are."""
    start = _common_length(source, changed)
    tail = _common_length(source[start:][::-1], changed[start:][::-1])
    end, text = len(source) - tail, changed[start : len(changed) - tail]
    lines = difflib.unified_diff(
        source.splitlines(), changed.splitlines(), file, file, lineterm="", n=2
    )
    diff = "\n".join(lines)
    identity = [row for row in diff.splitlines() if row.startswith(("-", "+"))]
    name = zlib.crc32("\n".join([function, *identity]).encode())
    return DrawnBug(
        name=f"{room}-{name:08x}",
        room=room,
        slip=slip,
        file=file,
        function=function,
        line=_first_line(source, changed),
        start=start,
        end=end,
        text=text,
        digest=digest_of(source),
        diff=diff,
    )


def _common_length(one: str, other: str) -> int:
    for n, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return n
    return min(len(one), len(other))


def _first_line(source: str, changed: str) -> int:
    """The first line of the changed source that differs. If the bug only removes a line, the line
    after it."""
    return changed.count("\n", 0, _common_length(source, changed)) + 1
