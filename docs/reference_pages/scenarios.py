"""The page of scenarios, by suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from docs.reference_pages.markdown import bullets, code, codes, page, sentence, setting, table
from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault
from urteil.harness.bounds import Bounds, Dimension, Value
from urteil.harness.hunt.run_choice import planes_of
from urteil.harness.permits import permits_of
from urteil.harness.permitted_deviations import Permit
from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios import SCENARIOS

ABOUT = """\
What each scenario plays: its clients, its faults, and the guarantees that must be judged. Every
guarantee is checked in every run; a run is UNKNOWN if one that its scenario names was not judged.
What a scenario permits is derived from its settings and faults (`harness/permits.py`).
A scenario that "needs KRaft" or
"needs ZooKeeper" runs on targets with that metadata plane alone; others run on both.
`urteil list scenarios` prints this list, `urteil schedule SCENARIO --seed N` the schedule of a
seed. [Schedules](../guide/schedules.md) explains moments and targets. This page is generated from
`harness/scenarios/` by `make docs`."""

WITHOUT = "Without a suite"


def render() -> dict[str, str]:
    suites: dict[str, list[Scenario]] = {}
    for scenario in SCENARIOS.values():
        suite = f"Suite {scenario.suites[0]}" if scenario.suites else WITHOUT
        suites.setdefault(suite, []).append(scenario)
    index = table(
        ("suite", "scenarios"),
        ((_link(suite), ", ".join(_link(scenario.name) for scenario in scenarios))
         for suite, scenarios in sorted(suites.items())),
    )  # fmt: skip
    sections = [
        "\n\n".join([f"## {suite}", *map(_section, scenarios)])
        for suite, scenarios in sorted(suites.items())
    ]
    return {"scenarios.md": page("Scenarios", ABOUT, _defaults(), index, *sections)}


def _link(heading: str) -> str:
    return f"[{heading}](#{heading.lower().replace(' ', '-')})"


def _defaults() -> str:
    load, topic, cluster = WorkloadSpec(), TopicSpec(), ClusterSpec()
    return (
        f"Unless a scenario says otherwise it has {cluster.brokers} brokers and "
        f"{cluster.zookeepers} ZooKeeper, a topic of {topic.partitions} partitions with "
        f"{topic.replication_factor} replicas, {load.producers} idempotent producers with "
        f"acks=all, {load.consumers} reader, "
        f"{load.rate_records_per_s:g} records/s and {Scenario(name='').duration_s:g} s of load. "
        "Sessions of ZooKeeper and `replica.lag.time.max.ms` are 3 s on every target."
    )


def _section(scenario: Scenario) -> str:
    lines = [] if scenario.bounds else [_workload(scenario.workload)]
    if cluster := _cluster(scenario.cluster):
        lines.append(f"Cluster: {cluster}")
    if scenario.bounds is not None:
        lines.append(_bounds(scenario.bounds))
    lines.append(_faults(scenario))
    lines.append(f"Must be judged: {codes(scenario.guarantees)}")
    if scenario.survives:
        lines.append("The settings promise progress during its faults (`no_progress`)")
    if scenario.bounds is None and (permits := permits_of(scenario)):
        lines.append(f"Permits: {'; '.join(p.value for p in Permit if p in permits)}")
    if scenario.must_find:
        lines.append(f"Its runs must find, as permitted: {codes(scenario.must_find)}")
    planes = planes_of(scenario)
    if len(planes) == 1:
        lines.append(f"Needs {planes[0]}")
    if len(scenario.suites) > 1:
        lines.append(f"Also in the suites {codes(scenario.suites[1:])}")
    return f"### {scenario.name}\n\n{sentence(scenario.about)}\n\n{bullets(lines)}"


def _differences(spec: msgspec.Struct, *skipped: str) -> list[str]:
    """The fields of `spec` that are not at their defaults."""
    shown = []
    for field in msgspec.structs.fields(spec):
        value = getattr(spec, field.name)
        if field.name not in skipped and value != field.default:
            shown.append(setting(field.name, value))
    return shown


def _workload(load: WorkloadSpec) -> str:
    settings = _differences(load, "kind", "topics", "options")
    settings += [setting(name, value) for name, value in _options(load).items()]
    topics = [_topic(topic) for topic in load.topics]
    shown = f"Workload: {code(load.kind)}"
    if settings:
        shown += f" with {', '.join(settings)}"
    if any(topics):
        shown += f"; topics: {'; '.join(topic or 'the default' for topic in topics)}"
    return shown


def _options(load: WorkloadSpec) -> dict[str, Any]:
    """The options of the workload: a dictionary, or a struct of which the set ones are shown."""
    options: Any = load.options
    if isinstance(options, dict):
        return options
    return {
        field.name: getattr(options, field.name)
        for field in msgspec.structs.fields(options)
        if getattr(options, field.name) != field.default
    }


def _topic(topic: TopicSpec) -> str:
    parts = [setting(name, value) for name, value in topic.config.items()]
    if topic.replication_factor != 3 or topic.partitions != 3:
        parts.insert(0, f"{topic.partitions} x {topic.replication_factor} replicas")
    if topic.copies:
        parts.append("written by the application alone")
    if not parts:
        return ""
    return f"{code(topic.name)} ({', '.join(parts)})"


PLACES = {
    "cluster": "Cluster",
    "brokers": "Settings of all brokers",
    "clients": "Clients",
    "options": "Options of clients",
    "topic": "Each topic",
    "topic settings": "Settings of each topic",
    "faults": "Schedule",
}


def _bounds(bounds: Bounds) -> str:
    places = [
        f"{heading}: " + "; ".join(_dimension(d) for d in bounds.dimensions if d.of == place)
        for place, heading in PLACES.items()
    ]
    about = "Drawn by the seed, a value with `x N` N times as often as the rarest"
    return "\n".join(
        [f"{about}; at most {bounds.most_replicas} replicas in all:", bullets(places, indent=2)]
    )


def _dimension(dimension: Dimension) -> str:
    values, weights = dimension.values, dimension.weights or (1.0,) * len(dimension.values)
    if _is_range(values):
        shown = f"{values[0]} to {values[-1]}"
    else:
        least = min(weights)
        shown = ", ".join(
            ("the default" if value is None else code(_text(value)))
            + (f" x {weight / least:g}" if weight > least else "")
            for value, weight in zip(values, weights, strict=True)
        )
    given = " and ".join(
        f"{name} is {' or '.join('unset' if v is None else _text(v) for v in values)}"
        for name, values in dimension.only_with.items()
    )
    return f"{code(dimension.name)} {shown}" + (f" (if {given})" if given else "")


def _is_range(values: Sequence[Value]) -> bool:
    first = values[0]
    return (
        len(values) > 2
        and isinstance(first, int)
        and list(values) == list(range(first, first + len(values)))
    )


def _text(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _cluster(cluster: ClusterSpec) -> str:
    settings = _differences(cluster, "config")
    settings += [setting(name, value) for name, value in cluster.config.items()]
    return ", ".join(settings)


def _faults(scenario: Scenario) -> str:
    named = [_fault(fault) for fault in scenario.faults]
    if scenario.draw is not None:
        named += [_choice(choice) for choice in scenario.draw.choices]
        return "\n".join([_draw(scenario, scenario.draw), bullets(named, indent=2)])
    return "\n".join(["Faults:", bullets(named, indent=2)]) if named else "Faults: none"


def _draw(scenario: Scenario, draw: RandomSchedule) -> str:
    number = f"{draw.count} faults" if draw.count is not None else "faults"
    at_once = scenario.at_once or draw.at_once
    together = f", at most {at_once} at once" if at_once > 1 else ", one at a time"
    if scenario.bounds is not None:
        together = ", of those that can act in the drawn scenario, several at once"
    settings = _differences(draw, "choices", "count", "at_once")
    more = f" ({', '.join(settings)})" if settings else ""
    return f"Faults: {number} drawn by the seed{together}{more}. The choices, by weight:"


def _choice(choice: WeightedFault) -> str:
    options = [setting(name, value) for name, value in choice.options.items()]
    notes = [", ".join(options)] if options else []
    notes += ["alone"] if choice.alone else []
    more = f" ({', '.join(notes)})" if notes else ""
    return f"{choice.weight:g} x {code(choice.fault)} of {codes(choice.targets)}{more}"


def _fault(fault: FaultSpec) -> str:
    if fault.after_event is not None:
        begin = f"at the first event {code(fault.after_event)} after {fault.at_s or 0:g} s"
        if fault.within_s is not None:
            begin += f", within {fault.within_s:g} s"
    elif fault.after_acks is not None:
        begin = f"{fault.at_s or 0:g} s after {fault.after_acks} acknowledgements"
    else:
        begin = f"at {fault.at_s or 0:g} s"
    options = [setting(name, value) for name, value in fault.options.items()]
    held = f"healed {fault.duration_s:g} s later" if fault.duration_s else "healed at once"
    alone = ", alone" if fault.alone else ""
    more = f" ({', '.join(options)})" if options else ""
    return f"{begin}: {code(fault.fault)} of {code(fault.target)}{more}, {held}{alone}"
