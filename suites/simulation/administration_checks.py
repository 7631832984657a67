"""What an administrator's acts promise, judged by ZooKeeper's changes and the folders on disks.

Judged is the end of a run, which had nothing to disturb it for `Administration.settle`. A request
without a clear answer may be done at any later time, as long as its connection holds it: what
stands is judged only where no act of its kind was left open. That moves and deletions end is judged
of all.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from urteil.suites.simulation.administration import SETTING
from urteil.suites.simulation.evidence import Evidence, Place
from urteil.suites.simulation.history import Act

IMBALANCE = 0.10
"""leader.imbalance.per.broker.percentage"""
NOTICED_S = 3.0
"""How much later than ZooKeeper a controller may know of a broker: its session's timeout."""
_TOPIC, _DELETIONS = "/brokers/topics/", "/admin/delete_topics/"
_LOG = re.compile(r"/data/(?!__)(.+)-(\d+)")
_MARKED = re.compile(r"/data/(?!__).+-delete")


def undone_administration(evidence: Evidence) -> Iterator[str]:
    """What was acknowledged last stands: topics, their partitions and their setting."""
    end = _final_nodes(evidence)
    for acts in _acknowledged(evidence, "create", "delete"):
        topic, last = acts[-1].topic, acts[-1]
        is_there = _TOPIC + topic in end
        if last.kind == "create" and not is_there:
            yield f"{topic} is gone: its creation was acknowledged at {last.end_s:.3f} s"
        if last.kind == "delete" and is_there and f"{_DELETIONS}{topic}" not in end:
            yield f"{topic} is there: its deletion was acknowledged at {last.end_s:.3f} s"
    for acts in _acknowledged(evidence, "create", "grow"):
        topic, count = acts[-1].topic, max(act.asked for act in acts)
        if (node := end.get(_TOPIC + topic)) and len(node["partitions"]) < count:
            yield f"{topic} has {len(node['partitions'])} partitions, {count} acknowledged"
    for acts in _acknowledged(evidence, "configure"):
        topic, value = acts[-1].topic, acts[-1].asked
        stands = end.get(f"/config/topics/{topic}", {}).get("config", {}).get(SETTING)
        if _TOPIC + topic in end and stands != value:
            yield f"{topic}: {SETTING} is {stands}, {value} acknowledged"


def unfinished_administration(evidence: Evidence) -> Iterator[str]:
    """No deletion and no move is left; replicas are where the last move puts them; and a cancelled
    move ended when that was answered."""
    if not evidence.history.acts:
        return
    end = _final_nodes(evidence)
    for path in sorted(end):
        if path.startswith(_DELETIONS):
            yield f"{path} is there: the topic was not deleted"
        if _is_topic(path) and (moving := _moving(end[path])):
            yield f"{path}: partitions {sorted(moving)} are still moved"
    for acts in _acknowledged(evidence, "move", "cancel"):
        last = acts[-1]
        partitions = end.get(_TOPIC + last.topic, {}).get("partitions", {})
        replicas = partitions.get(str(last.partition), last.asked)
        if last.kind == "move" and replicas != last.asked:
            yield f"{last.topic}-{last.partition} has replicas {replicas}, moved to {last.asked}"
    for act in evidence.history.acts:
        if act.kind == "cancel" and act.outcome == "ok":
            versions = _during(evidence, _TOPIC + act.topic, act)
            if all(act.partition in _moving(version) for version in versions):
                yield (
                    f"{act.topic}-{act.partition}: its move went on after {act.end_s:.3f} s, when "
                    "its cancellation was acknowledged"
                )


def preferred_leader_ignored(evidence: Evidence) -> Iterator[str]:
    """A preferred leader leads when its election is answered, and again by itself."""
    if not evidence.history.acts:
        return
    for act in evidence.history.acts:
        if act.kind != "elect" or act.outcome != "ok":
            continue
        base = _TOPIC + act.topic
        preferred = {
            version["partitions"][str(act.partition)][0]
            for version in _during(evidence, base, act)
            if str(act.partition) in version["partitions"]
        }
        states = _during(evidence, f"{base}/partitions/{act.partition}/state", act)
        if states and preferred.isdisjoint(state["leader"] for state in states):
            yield (
                f"{act.topic}-{act.partition}: none of {sorted(preferred)} led when its election "
                f"was acknowledged at {act.end_s:.3f} s"
            )
    led: dict[int, list[tuple[Place, int]]] = defaultdict(list)
    for place, replicas, leader in _final_partitions(evidence):
        led[replicas[0]].append((place, leader))
    for preferred_leader, partitions in sorted(led.items()):
        astray = [place for place, leader in partitions if leader != preferred_leader]
        if len(astray) > IMBALANCE * len(partitions):
            yield f"broker {preferred_leader} should lead {astray} of {len(partitions)} partitions"


def lasting_files(evidence: Evidence) -> Iterator[str]:
    """Files that are marked for deletion are deleted after log.segment.delete.delay.ms."""
    for broker, path in evidence.lasting_files:
        yield f"{path} on {broker} was marked for deletion, and is there at the end"


def leftover_log(evidence: Evidence) -> Iterator[str]:
    """A moved replica and a deleted topic leave the disk, and so does what was marked.

    The controller asks once for the deletion of a moved replica, and only if it knows the broker
    to be there. A log may stay where the broker or the controller came or went around the move or
    later. When a marked folder goes is counted by its broker's clock, which must never have been
    wrong."""
    if not evidence.history.acts:
        return
    hosted = {
        (place, broker)
        for place, replicas, _ in _final_partitions(evidence)
        for broker in replicas
    }  # fmt: skip
    moved_s = _moved_away(evidence)
    for broker, folders in sorted(evidence.folders.items()):
        for folder in folders:
            if match := _LOG.fullmatch(folder):
                place = match[1], int(match[2])
                since_s = moved_s.get((place, broker))
                is_excused = since_s is not None and _presence_changed(evidence, broker, since_s)
                if (place, broker) not in hosted and not is_excused:
                    yield f"broker {broker} has the log of {place}, which it has no replica of"
            elif _MARKED.fullmatch(folder) and broker not in evidence.brokers_of_wrong_clocks:
                yield f"broker {broker} has {folder}"


def _acknowledged(evidence: Evidence, *kinds: str) -> Iterator[list[Act]]:
    """The acknowledged acts of these kinds on every topic or partition where none of them is
    open."""
    by_subject: dict[tuple[str, int | None], list[Act]] = defaultdict(list)
    for act in evidence.history.acts:
        if act.kind in kinds:
            by_subject[act.topic, act.partition].append(act)
    for acts in by_subject.values():
        acknowledged = [act for act in acts if act.outcome == "ok"]
        if acknowledged and all(act.outcome != "info" for act in acts):
            yield acknowledged


def _final_nodes(evidence: Evidence) -> dict[str, Any]:
    """The content of every node that is there in the end; {} where it is no JSON."""
    nodes: dict[str, bytes] = {}
    for change in evidence.changes:
        if change.data is None:
            nodes.pop(change.path, None)
        else:
            nodes[change.path] = change.data
    return {path: _content(data) for path, data in nodes.items()}


def _content(data: bytes) -> Any:
    return json.loads(data) if data.startswith(b"{") else {}


def _is_topic(path: str) -> bool:
    return path.startswith(_TOPIC) and path.count("/") == 3


def _final_partitions(evidence: Evidence) -> Iterator[tuple[Place, list[int], int]]:
    """Every partition in the end, with its replicas and its leader."""
    end = _final_nodes(evidence)
    for path, node in end.items():
        if _is_topic(path):
            for number, replicas in node["partitions"].items():
                if state := end.get(f"{path}/partitions/{number}/state"):
                    place = path.removeprefix(_TOPIC), int(number)
                    yield place, replicas, state["leader"]


def _moved_away(evidence: Evidence) -> dict[tuple[Place, int], float]:
    """When a broker was taken from the replicas of a partition for the last time, for good."""
    had: dict[Place, set[int]] = {}
    left_s: dict[tuple[Place, int], float] = {}
    for change in evidence.changes:
        if not _is_topic(change.path) or change.data is None:
            continue
        for number, replicas in _content(change.data)["partitions"].items():
            place = change.path.removeprefix(_TOPIC), int(number)
            for broker in had.get(place, set()).difference(replicas):
                left_s[place, broker] = change.at_s
            for broker in replicas:
                left_s.pop((place, broker), None)
            had[place] = set(replicas)
    return left_s


def _presence_changed(evidence: Evidence, broker: int, since_s: float) -> bool:
    """Whether the broker or the controller came or went since then, or shortly before."""
    paths = (f"/brokers/ids/{broker}", "/controller")
    return any(
        change.path in paths and change.at_s > since_s - NOTICED_S for change in evidence.changes
    )


def _moving(topic: Any) -> set[int]:
    """The partitions that a version of a topic's node has under way."""
    return {
        int(number)
        for kind in ("adding_replicas", "removing_replicas")
        for number, replicas in topic.get(kind, {}).items()
        if replicas
    }


def _during(evidence: Evidence, path: str, act: Act) -> list[Any]:
    """The versions of a node from an act's request to its answer: what is answered was written."""
    known = [
        (change.at_s, _content(change.data))
        for change in evidence.changes
        if change.path == path and change.data is not None and change.at_s <= act.end_s
    ]
    before = [content for at_s, content in known if at_s < act.begin_s]
    return [*before[-1:], *(content for at_s, content in known if at_s >= act.begin_s)]
