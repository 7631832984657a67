"""What Connect's internal topics finally hold, against what Connect acknowledged.

Connect keeps configurations of connectors and positions of sources in compacted topics. The lab
records each configuration that a worker acknowledged; the last one of a connector must be the last
one in the topic. A source that has read its whole file must have stored the file's end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from urteil.chaos.observations import LabFailure
from urteil.harness.clients.applications.connect.rest import persist
from urteil.harness.clients.applications.declaration import Context
from urteil.harness.clients.applications.result_topics import read_topic
from urteil.harness.evidence.outputs import Output

CONFIGURATION, ACKNOWLEDGED = "configuration", "acknowledged configuration"
POSITION, END = "position", "end of the file"
RECORDED = "configurations.jsonl"
PREFIX = "connector-"
"""The keys of connectors in the topic of configurations begin with it."""

CONFIGURATIONS = f"""
SELECT '{CONFIGURATION}' AS sink, o.key, o.value, 'latest' AS mode, 1 AS due
FROM outputs o WHERE o.sink = '{ACKNOWLEDGED}'
"""
POSITIONS = f"""
SELECT '{POSITION}', o.key, o.value, 'latest', 1 FROM outputs o WHERE o.sink = '{END}'
"""


def configure(
    context: Context, addresses: list[str], connector: str, settings: Mapping[str, str]
) -> None:
    """Configure a connector, and record the outcome. LabFailure if no worker acknowledges."""
    acknowledged = False
    try:
        persist(addresses, "PUT", f"/connectors/{connector}/config", settings)
        acknowledged = True
    finally:
        entry = {**settings, "name": connector} if acknowledged else None
        with (context.folder / RECORDED).open("a") as file:
            file.write(json.dumps([connector, entry]) + "\n")


def configurations(context: Context, topic: str) -> Iterator[Output]:
    """The last acknowledged configuration of each connector, and those in the topic. A connector
    whose last outcome is unknown is left out."""
    lines = (context.folder / RECORDED).read_text().splitlines()
    last = {name: settings for name, settings in map(json.loads, lines)}
    for number, (name, settings) in enumerate(last.items()):
        if settings is not None:
            yield Output(sink=ACKNOWLEDGED, position=number, key=name, value=_text(settings))
    for record in read_topic(context, topic, CONFIGURATION):
        name = (record.key or "").removeprefix(PREFIX)
        if name != record.key and last.get(name) is not None:
            value = None if record.value is None else _text(_properties(record.value))
            yield Output(sink=CONFIGURATION, position=record.position, key=name, value=value)


def positions(context: Context, topic: str, connector: str, file: Path) -> Iterator[Output]:
    """The end of a source's file, and the positions in the topic."""
    yield Output(sink=END, position=0, key=connector, value=str(file.stat().st_size))
    for record in read_topic(context, topic, POSITION):
        if json.loads(record.key or "[null]")[0] == connector and record.value is not None:
            value = str(json.loads(record.value)["position"])
            yield Output(sink=POSITION, position=record.position, key=connector, value=value)


def _properties(value: str) -> Mapping[str, str]:
    try:
        return dict(json.loads(value)["properties"])
    except (ValueError, KeyError, TypeError) as error:
        raise LabFailure(f"a configuration of a connector is damaged: {value[:200]}") from error


def _text(settings: Mapping[str, str]) -> str:
    return json.dumps(settings, sort_keys=True)
