"""Converts times in the journals of clients on other machines to the lab's clock.

A client stamps its entries with its machine's monotonic clock. On a grid of moments, that clock is
converted to the lab's (`HostClock`), and interpolated in between. So times keep their order, even
if another exchange converts the next moment. The bound of the exchanges is the bound of the error;
`samples` has it with that host as the source (`clock_bound_s`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgspec

from urteil.harness.clients.client_main import boot_id
from urteil.harness.evidence.journal import Begin, Entry
from urteil.harness.runtimes.hosts.host_clock import NS, HostClock

GRID_NS = 5 * NS
BEGIN_TAG = "begin"


def _names(entry: type[msgspec.Struct]) -> list[str]:
    """The fields of an entry in their order; its line begins with the tag."""
    return [field.encode_name for field in msgspec.structs.fields(entry)]


TIMES: dict[str, tuple[int, ...]] = {
    str(entry.__struct_config__.tag): tuple(
        at
        for at, name in enumerate(_names(entry), 1)
        if name.endswith("_ns") and not name.startswith("wall")
    )
    for entry in get_args(Entry)
}
"""Tag of an entry to the positions of its monotonic times."""
BOOT = 1 + _names(Begin).index("boot_id")


class JournalTimes:
    """Translates the lines of the clients of one host."""

    def __init__(self, clock: HostClock) -> None:
        self._clock = clock
        self._placed: dict[int, int] = {}

    def translate(self, lines: bytes) -> bytes:
        """Complete lines of a journal, by the lab's clock and boot."""
        return b"".join(map(self._translate_line, lines.splitlines(keepends=True)))

    def _translate_line(self, line: bytes) -> bytes:
        entry: list[Any] = msgspec.json.decode(line)
        for at in TIMES[entry[0]]:
            if entry[at] is not None:
                entry[at] = self.lab_time(entry[at])
        if entry[0] == BEGIN_TAG:
            entry[BOOT] = boot_id()
        return msgspec.json.encode(entry) + b"\n"

    def lab_time(self, host_ns: int) -> int:
        begin = host_ns - host_ns % GRID_NS
        low, high = self._place(begin), self._place(begin + GRID_NS)
        return low + (host_ns - begin) * (high - low) // GRID_NS

    def _place(self, moment_ns: int) -> int:
        """Convert a moment once, so that a later exchange changes no journaled time."""
        if moment_ns not in self._placed:
            self._placed[moment_ns] = self._clock.lab_time(moment_ns)[0]
        return self._placed[moment_ns]


Translate = Callable[[bytes], bytes]
