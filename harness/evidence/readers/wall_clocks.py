"""Monotonic times of what nodes stamped with their wall clocks.

All nodes have the lab's wall clock, unless a fault sets another one for some of them. The lab notes
each setting in `CLOCKS_SET`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from urteil.chaos.topology import node_id
from urteil.harness.evidence.journal import CLOCKS_SET

ADOPTED_NS = 500_000_000
"""A node follows a setting within a second (`false_clocks.CACHE_S`)."""
FOR_EVER_NS = 1 << 62


class ClockSetting(NamedTuple):
    """From `at_ns` on a node's wall clock is `ahead_ns` ahead of the lab's."""

    at_ns: int
    ahead_ns: int


class WallClocks:
    """`wall_minus_monotonic_ns` is the lab's. `settings` are in order, by node id, from the node's
    start on; the last one is valid until `end_ns`."""

    def __init__(
        self,
        wall_minus_monotonic_ns: int,
        settings: Mapping[int, Sequence[ClockSetting]] | None = None,
        *,
        end_ns: int = FOR_EVER_NS,
    ) -> None:
        self._offset_ns = wall_minus_monotonic_ns
        self._settings = settings or {}
        self._end_ns = end_ns

    def monotonic_ns(self, wall_ms: int, node: int | None, *, after_ns: int = 0) -> int:
        """When the node stamped something with `wall_ms`. A stamp that fits several settings of a
        clock that jumped back is that of the first one that is not before `after_ns`, the time of
        the previous stamp in the same log."""
        lab_ns = wall_ms * 1_000_000 - self._offset_ns
        if node is None or node not in self._settings:
            return lab_ns
        settings = self._settings[node]
        ends_ns = [setting.at_ns for setting in settings[1:]] + [self._end_ns]

        def distance_ns(span: tuple[ClockSetting, int]) -> int:
            setting, end_ns = span
            at_ns = lab_ns - setting.ahead_ns - ADOPTED_NS
            return max(setting.at_ns - at_ns, at_ns - end_ns, after_ns - ADOPTED_NS * 2 - at_ns, 0)

        chosen, _ = min(zip(settings, ends_ns, strict=True), key=distance_ns)
        return lab_ns - chosen.ahead_ns


def read_wall_clocks(folder: Path, wall_minus_monotonic_ns: int, end_ns: int) -> WallClocks:
    """The clocks of a cluster's nodes, which ended at `end_ns`. `folder` is the cluster's."""
    path, settings = folder / CLOCKS_SET, defaultdict[int, list[ClockSetting]](list)
    for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
        if line.endswith("\n"):  # a killed lab may leave half a line
            row = json.loads(line)
            setting = ClockSetting(row["at_ns"], round(row["ahead_s"] * 1e9))
            settings[node_id(row["node"])].append(setting)
    return WallClocks(wall_minus_monotonic_ns, settings, end_ns=end_ns)
