"""The times at which brokers were registered and controllers active, by the metadata plane and the
faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from urteil.harness.scenario import Scenario
from urteil.harness.verify.derived.intervals import Interval, undisturbed_between
from urteil.harness.verify.derived.quorum_losses import quorum_losses
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS

IDS, CONTROLLER = "/brokers/ids/", "/controller"
Presence = Mapping[str, Sequence[Interval]]
"""Each znode of a broker or controller with the times in which it existed."""


def broker_path(broker: int) -> str:
    return f"{IDS}{broker}"


def presence_of(states: Iterable[Row], faults: Sequence[Row], scenario: Scenario) -> Presence:
    """The times from each creation of such a znode to its deletion or next creation. Controllers of
    KRaft are absent while faults leave their quorum without a majority."""
    presence = _registrations(states)
    losses = quorum_losses(faults, scenario)
    terms = [
        part
        for term in presence.get(CONTROLLER, ())
        for part in undisturbed_between(losses, term.begin_ns, term.end_ns)
    ]
    return {**presence, CONTROLLER: terms} if terms else presence


def _registrations(states: Iterable[Row]) -> dict[str, list[Interval]]:
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
