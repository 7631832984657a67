"""Schedules as files: drawn, written by hand, saved from a run, played again.

A schedule is a list of faults and the load under which they are played. `settled` draws the one of
a scenario and its seed. `schedule.json` of a run holds it with the moments at which faults were
played.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from urteil.chaos import client_selectors
from urteil.chaos.effects import OF_SECOND_CLUSTER
from urteil.chaos.faults import FAULTS
from urteil.chaos.nemesis import Injection
from urteil.chaos.node_selectors import check_target, split_cluster
from urteil.chaos.random_schedule import TAIL_S, draw_schedule
from urteil.chaos.schedule import PlannedFault, check_fault, plan_fault, plan_schedule, sort_key
from urteil.chaos.topology import EAST
from urteil.harness.drawn_scenario import draw_scenario
from urteil.harness.scenario import DYNAMIC, FaultSpec, Scenario, node_names

_SECOND_NS = 1_000_000_000
_replace = msgspec.structs.replace


class ScheduleError(ValueError):
    """A schedule cannot be read or played. The message names file, entry and remedy."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The play of a fault: seconds after the begin of the load, nodes hit, whether it acted."""

    begin_s: float
    healed_s: float | None
    targets: list[str]
    acted: bool


class Entry(FaultSpec, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fault of a schedule's file."""

    played: Played | None = None


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule file. None stands for the scenario's own value."""

    scenario: str | None = None
    seed: int | None = None
    duration_s: float | None = None
    rate_records_per_s: float | None = None
    producers: int | None = None
    at_once: int | None = None
    faults: tuple[Entry, ...] = ()


def settle_schedule(scenario: Scenario) -> Scenario:
    """The scenario with what its seed draws: within its bounds, and its schedule, shifted. Only
    timing is left to chance.

    A scenario that is settled already is returned unchanged. Raises ValueError for faults that
    cannot be planned or drawn.
    """
    scenario = draw_scenario(scenario)
    topic = scenario.workload.topics[0].name
    for fault in scenario.faults:
        _check_cluster(fault, scenario)
    faults = plan_schedule(scenario.faults, seed=scenario.seed, topic=topic)
    at_once, duration_s = scenario.at_once, scenario.duration_s
    if scenario.draw is not None:
        drawn = draw_schedule(
            scenario.draw,
            seed=scenario.seed,
            load_s=scenario.duration_s,
            rate_records_per_s=scenario.workload.rate_records_per_s,
            topic=topic,
            runtime=scenario.runtime,
            target=scenario.target,
            behind=len(faults),
        )
        ends = [
            planned_fault.at_s + planned_fault.duration_s
            for planned_fault in drawn
            if planned_fault.after_acks is None
        ]
        duration_s = max([duration_s, *(round(end + TAIL_S, 3) for end in ends)])
        faults = sorted([*faults, *drawn], key=sort_key)
        at_once = at_once or scenario.draw.at_once
    specs = tuple(_spec(fault, topic) for fault in faults)
    return _replace(scenario, faults=specs, draw=None, at_once=at_once, duration_s=duration_s)


def _spec(planned_fault: PlannedFault, topic: str) -> FaultSpec:
    where: dict[str, str | float | bool] = {}
    if planned_fault.arguments.topic != topic:
        where["topic"] = planned_fault.arguments.topic
    if planned_fault.arguments.partition:
        where["partition"] = planned_fault.arguments.partition
    return FaultSpec(
        fault=planned_fault.fault,
        target=planned_fault.arguments.selector,
        at_s=planned_fault.at_s,
        after_acks=planned_fault.after_acks,
        after_event=planned_fault.after_event,
        within_s=planned_fault.within_s,
        duration_s=planned_fault.duration_s,
        alone=planned_fault.alone,
        options={**planned_fault.arguments.options, **where},
        choice=planned_fault.arguments.seed,
    )


def schedule_of(
    scenario: Scenario, *, injections: Sequence[Injection] = (), began_ns: int = 0
) -> Schedule:
    """The schedule of a settled scenario, with what was played of it."""
    load = scenario.workload
    topic = load.topics[0].name
    played = {
        injection.planned.arguments.seed: _played_times(injection, began_ns)
        for injection in injections
        if injection.planned
    }
    return Schedule(
        scenario=scenario.name,
        seed=scenario.seed,
        duration_s=scenario.duration_s,
        rate_records_per_s=load.rate_records_per_s,
        producers=load.producers,
        at_once=scenario.at_once,
        faults=tuple(
            Entry(
                **msgspec.structs.asdict(_spec(planned_fault, topic)),
                played=played.get(planned_fault.arguments.seed),
            )
            for planned_fault in plan_schedule(scenario.faults, seed=scenario.seed, topic=topic)
        ),
    )


def _played_times(injection: Injection, began_ns: int) -> Played:
    healed_ns = injection.healed_ns
    return Played(
        begin_s=round((injection.begin_ns - began_ns) / _SECOND_NS, 3),
        healed_s=None if healed_ns is None else round((healed_ns - began_ns) / _SECOND_NS, 3),
        targets=list(injection.targets),
        acted=injection.acted,
    )


def with_schedule(scenario: Scenario, schedule: Schedule) -> Scenario:
    """The scenario with this schedule instead of its own faults and load."""
    faults = tuple(
        FaultSpec(**{k: v for k, v in msgspec.structs.asdict(fault).items() if k != "played"})
        for fault in schedule.faults
    )
    load = {
        name: value
        for name in ("rate_records_per_s", "producers")
        if (value := getattr(schedule, name)) is not None
    }
    lasts = schedule.duration_s
    if lasts is None:
        ends = [(fault.at_s or 0.0) + fault.duration_s + TAIL_S for fault in faults]
        lasts = max([scenario.duration_s, *ends])
    own = scenario.at_once or (scenario.draw.at_once if scenario.draw else None)
    return _replace(
        scenario,
        faults=faults,
        draw=None,
        at_once=schedule.at_once or own,
        duration_s=lasts,
        workload=_replace(scenario.workload, **load),
    )


def save_schedule(path: Path, schedule: Schedule) -> None:
    """Write the schedule as JSON, completely or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(text_of(schedule).encode())
    part.replace(path)


def text_of(schedule: Schedule) -> str:
    """The JSON of a schedule, with a newline."""
    return msgspec.json.format(msgspec.json.encode(schedule), indent=2).decode() + "\n"


def read_schedule(path: Path) -> Schedule:
    """Read a schedule from JSON or TOML (by the file's name), whatever its faults are.

    Raises ScheduleError with file, entry and remedy.
    """
    try:
        text = path.read_text()
        data: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ScheduleError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScheduleError(f"{path} is not text: write it as TOML or JSON") from None
    except (ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ScheduleError(f"{path} is not valid {kind}: {error}") from None
    try:
        return msgspec.convert(data, Schedule)
    except msgspec.ValidationError as error:
        raise ScheduleError(f"{path}: {_plain(str(error), data)}") from None


def load_schedule(path: Path, scenario: Scenario) -> Schedule:
    """Read a schedule for `scenario`'s cluster, as `read_schedule` does.

    Entries without a `choice` get one by their place, so that the file alone defines the play.
    Raises ScheduleError with file, entry and remedy.
    """
    schedule = read_schedule(path)
    _check_load(path, schedule)
    entries = tuple(
        fault if fault.choice else _replace(fault, choice=f"{n}/{fault.fault}")
        for n, fault in enumerate(schedule.faults)
    )
    for n, entry in enumerate(entries):
        try:
            _check_entry(entry, scenario)
        except ValueError as error:
            raise ScheduleError(f"{path}: fault {n + 1} ({entry.fault}): {error}") from None
    _check_choices(path, entries)
    return _replace(schedule, faults=entries)


def _check_load(path: Path, schedule: Schedule) -> None:
    for name in ("duration_s", "rate_records_per_s", "producers"):
        value = getattr(schedule, name)
        if value is not None and not 0 <= value <= 1_000_000:
            raise ScheduleError(f"{path}: {name} is {value:g}: give 0 to 1,000,000")
    if schedule.at_once is not None and schedule.at_once < 1:
        raise ScheduleError(f"{path}: at_once is {schedule.at_once}: give 1 or more")


def _check_entry(entry: Entry, scenario: Scenario) -> None:
    for name in ("at_s", "within_s", "duration_s", "after_acks"):
        value = getattr(entry, name)
        if value is not None and not 0 <= value <= 1_000_000:
            raise ValueError(f"{name} is {value:g}: give 0 to 1,000,000")
    check_fault(entry.fault)
    _check_cluster(entry, scenario)
    if why := static_quorum_reason(entry, scenario):
        raise ValueError(why)
    _check_target(entry, FAULTS[entry.fault].selectors, scenario)
    plan_fault(entry, shift_s=0, choice=entry.choice, topic=scenario.workload.topics[0].name)


def _check_cluster(fault_spec: FaultSpec, scenario: Scenario) -> None:
    """ValueError for a target in a second cluster that the scenario has not, or on which the fault
    cannot act: acts of administration and of disks are judged in the first cluster only."""
    cluster, _ = split_cluster(fault_spec.target)
    if cluster == EAST or fault_spec.fault not in FAULTS:
        return
    if scenario.second is None:
        raise ValueError(
            f"{fault_spec.target!r}: {scenario.name} has one cluster; leave {cluster}: out"
        )
    if not FAULTS[fault_spec.fault].effects <= OF_SECOND_CLUSTER:
        raise ValueError(
            f"{fault_spec.target!r}: {fault_spec.fault} acts on the first cluster only"
        )


def static_quorum_reason(fault_spec: FaultSpec, scenario: Scenario) -> str:
    """Why a fault cannot change the voters; empty if it does not, or the quorum is dynamic."""
    if FAULTS[fault_spec.fault].changes_voters and scenario.cluster.quorum != DYNAMIC:
        return f"the fault {fault_spec.fault} needs voters that can change: --quorum dynamic"
    return ""


def _check_target(entry: Entry, meaning: str, scenario: Scenario) -> None:
    """Check the target of an entry. Targets of some faults are known during the run only."""
    cluster, target = split_cluster(entry.target)
    if "role" in meaning or "zk1" in meaning:
        names = node_names(scenario, cluster)
        check_target(
            target,
            meaning,
            brokers=names.brokers,
            zookeepers=names.zookeepers,
            voters=names.voters,
        )
    elif "a client" in meaning and "client id" not in meaning:
        client_selectors.check_target(target)
    elif meaning.startswith("all") and target not in meaning.split(" or "):
        raise ValueError(f"{target!r} is not {meaning}: this fault is of all of them")
    elif target == "quorum" and not node_names(scenario, cluster).voters:
        raise ValueError("'quorum': the cluster has no quorum of KRaft, but ZooKeeper")


def _check_choices(path: Path, entries: Sequence[Entry]) -> None:
    """Choices identify played faults, so they must differ."""
    choices: dict[str, int] = {}
    for n, entry in enumerate(entries):
        if entry.choice in choices:
            first = choices[entry.choice] + 1
            raise ScheduleError(
                f"{path}: faults {first} and {n + 1} have the choice {entry.choice!r}: "
                "change one, or leave it out"
            )
        choices[entry.choice] = n


_PLAIN_TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
"""msgspec's names of types, in words."""


def _plain(error: str, data: Any) -> str:
    """An error of msgspec, `... - at `$.faults[2].at_s``, with the entry counted from 1 and types
    in plain words."""
    reason, _, where = error.partition(" - at `$")
    for kind, words in _PLAIN_TYPES.items():
        reason = reason.replace(f"`{kind}`", words).replace(f"`{kind} | null`", words)
    where = where.rstrip("`")
    match = re.match(r"\.faults\[(\d+)\]\.?(.*)", where)
    if not match:
        return f"{where.lstrip('.')}: {reason}" if where else reason
    n = int(match[1])
    entry = data["faults"][n]
    name = f" ({entry.get('fault', 'no fault named')})" if isinstance(entry, dict) else ""
    return f"fault {n + 1}{name}{', ' + match[2] if match[2] else ''}: {reason}; " + (
        "fields are " + ", ".join(struct_field for struct_field in FaultSpec.__struct_fields__)
    )
