"""The times at which brokers were registered and controllers active, by the metadata plane."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from urteil.harness.verify.derived.impact import Interval
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS

IDS, CONTROLLER = "/brokers/ids/", "/controller"
Presence = Mapping[str, Sequence[Interval]]
"""Each znode of a broker or controller with the times in which it existed."""


def broker_path(broker: int) -> str:
    return f"{IDS}{broker}"


def presence_of(states: Iterable[Row]) -> Presence:
    """The times from each creation of such a znode to its deletion or next creation."""
    begun: dict[str, int] = {}
    presence: dict[str, list[Interval]] = defaultdict(list)
    for row in sorted(states, key=lambda row: int(row["zxid"])):
        path = str(row["path"])
        if not path.startswith(IDS) and path != CONTROLLER:
            continue
        begin_ns = begun.pop(path, None)
        if begin_ns is not None:
            presence[path].append(Interval(begin_ns, row["at_ns"]))
        if row["version"] != -1:
            begun[path] = row["at_ns"]
    for path, begin_ns in begun.items():
        presence[path].append(Interval(begin_ns, FOREVER_NS))
    return dict(presence)
