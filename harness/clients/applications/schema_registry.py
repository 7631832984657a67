"""A schema registry: producers and consumers with Avro by schema id, over Apicurio Registry.

The registry's API is Confluent's, its storage a database in a file, which outlives its kills. After
the run it starts once more from that file. Then it must have every id that a record carries, with
the schema under which the writer got the id. It must have refused every incompatible schema.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from operator import not_
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import msgspec

from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until
from urteil.harness.clients.applications.declaration import (
    HOST,
    Application,
    AppProcess,
    Context,
)
from urteil.harness.clients.applications.programs import avro_copy
from urteil.harness.clients.applications.programs.avro_copy import (
    ID_BYTES,
    OBSERVATIONS,
    READY,
    UNKNOWN,
    Job,
    Observation,
)
from urteil.harness.clients.applications.progress import uncopied_values
from urteil.harness.clients.applications.result_topics import read_topic
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.schema_registry import registry_jar, serializer_packages
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario, TopicSpec

API = "/apis/ccompat/v7"
TOPIC, SINK = "avro", "registry"
REGISTRY = "r1"
COMPATIBILITY = {"compatibility": "FULL"}
READY_S, REQUEST_S, POLL_S = 120.0, 5.0, 0.3
VOLATILE = "volatile"
"""The variant whose registry keeps its schemas in memory and loses them with its process."""

EXPECTED = f"""
SELECT '{SINK}' AS sink, 'schemas' AS key, 'compared' AS value, 'latest' AS mode, 1 AS due
UNION ALL SELECT '{SINK}', 'incompatible schema', 'refused', 'latest', 1
"""


def fetch_parts(_scenario: Scenario) -> None:
    """Fetch the registry and the serializers."""
    java()
    registry_jar()
    serializer_packages()


def registry_command(context: Context, name: str) -> list[str]:
    """The registry, with its database in the process's folder."""
    storage = f"file:{context.process_folder(name) / 'registry'};WRITE_DELAY=0"
    if ApplicationOptions.of(context.load).variant == VOLATILE:
        storage = "mem:registry"
    settings = {
        "REGISTRY_DATASOURCE_URL": f"jdbc:h2:{storage}",
        "QUARKUS_HTTP_HOST": HOST,
        "HTTP_PORT": str(context.port(name)),
    }
    argv = [*context.jvm(name, "400m"), "-jar", str(registry_jar())]
    return ["env", *(f"{key}={value}" for key, value in settings.items()), *argv]


def missing_registry(context: Context, name: str) -> str:
    """What the registry lacks to be ready."""
    try:
        request(context, name, "/subjects")
    except (OSError, ValueError) as error:
        return f"it does not answer: {error}"
    return ""


def copy_command(role: str, context: Context, name: str) -> list[str]:
    """The writer or the reader."""
    avro, folder = context.topic(TOPIC), context.process_folder(name)
    is_writer = role == "writer"
    job = Job(
        role="writer" if is_writer else "reader",
        run=context.run,
        servers=context.servers,
        client=name,
        group=context.group,
        source=context.inputs[0] if is_writer else avro,
        sink=avro if is_writer else context.outputs[0],
        registry=f"http://{context.address(REGISTRY)}{API}",
        folder=str(folder),
    )
    path = folder / "job.json"
    path.write_bytes(msgspec.json.encode(job))
    program = [sys.executable, "-m", avro_copy.__name__, str(path)]
    return ["env", f"PYTHONPATH={serializer_packages()}", *program]


def missing_copier(context: Context, name: str) -> str:
    """What the writer or the reader lacks to be ready."""
    log = context.log(name)
    is_ready = log.exists() and READY in log.read_text(errors="replace")
    return "" if is_ready else "it has not subscribed"


def request(context: Context, name: str, path: str, body: object = None) -> Any:
    """One request to the registry; a body makes it a PUT. Raises OSError without an answer."""
    data = None if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "PUT"
    headers = {"Content-Type": "application/json"}
    url = f"http://{context.address(name)}{API}{path}"
    with urlopen(Request(url, data, headers, method=method), timeout=REQUEST_S) as response:
        return json.load(response)


def require_compatibility(context: Context) -> None:
    """Set the rule for all subjects."""
    request(context, REGISTRY, "/config", COMPATIBILITY)


@contextlib.contextmanager
def standing_registry(context: Context) -> Iterator[None]:
    """The registry, started once more from its database."""
    log = context.run_dir / "logs" / "client-registry-check.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            registry_command(context, REGISTRY),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        missing = until(
            partial(missing_registry, context, REGISTRY), not_, deadline_s=READY_S, poll_s=POLL_S
        )
        if missing:
            raise LabFailure(f"the registry did not start again from its database: {missing}")
        yield
    finally:
        process.kill()
        process.wait()


def read_outputs(context: Context) -> Iterator[Output]:
    """Rows of what the registry did wrong, and rows that show that it was examined."""
    ids = Counter(
        int.from_bytes(bytes.fromhex(row.value or "")[ID_BYTES], "big")
        for row in read_topic(context, context.topic(TOPIC), SINK, value=bytes.hex)
    )
    seen = observations(context.folder)
    with standing_registry(context):
        rows = {
            **unknown_ids(context, ids),
            **other_schemas(context, seen),
            **{f"incompatible schema {observation.schema_id}": observation.kind
               for observation in seen
               if observation.kind == "accepted"},
            "schemas": "compared",
        }  # fmt: skip
    if any(observation.kind == "refused" for observation in seen):
        rows["incompatible schema"] = "refused"
    for position, (key, value) in enumerate(rows.items()):
        yield Output(sink=SINK, position=position, key=key, value=value)


def observations(folder: Path) -> list[Observation]:
    """All observations of the writer and the reader."""
    return [
        msgspec.json.decode(line, type=Observation)
        for path in sorted(folder.glob(f"*/{OBSERVATIONS}"))
        for line in path.read_bytes().splitlines()
    ]


def unknown_ids(context: Context, ids: Counter[int]) -> dict[str, str]:
    """The ids that records carry and the registry does not have, with the number of records."""
    return {
        f"schema id {number} is unknown": f"{records} records"
        for number, records in sorted(ids.items())
        if schema_of(context, number) is None
    }


def other_schemas(context: Context, seen: list[Observation]) -> dict[str, str]:
    """The ids that now have another schema than the one that they were assigned to."""
    others = {}
    for observation in seen:
        schema = (
            schema_of(context, observation.schema_id) if observation.kind == "assigned" else None
        )
        if schema is not None and schema != json.loads(avro_copy.schema_text(observation.fields)):
            others[f"schema id {observation.schema_id} has another schema"] = json.dumps(schema)
    return others


def schema_of(context: Context, number: int) -> Any:
    """The schema with this id; None if the registry does not have it."""
    try:
        return json.loads(request(context, REGISTRY, f"/schemas/ids/{number}")["schema"])
    except HTTPError as error:
        if error.code == UNKNOWN:
            return None
        raise LabFailure(f"the registry answered {error.code} for schema {number}") from error
    except URLError as error:
        raise LabFailure(f"the registry did not answer for schema {number}: {error}") from error


APPLICATION = Application(
    name="schema-registry",
    about="Apicurio Registry, and a producer and a consumer with Confluent's Avro serializers",
    processes=(
        AppProcess(
            prefix="r",
            role="service",
            command=registry_command,
            missing=missing_registry,
            ready_s=READY_S,
        ),
        AppProcess(
            prefix="w",
            role="app",
            command=partial(copy_command, "writer"),
            missing=missing_copier,
        ),
        AppProcess(
            prefix="d",
            role="app",
            command=partial(copy_command, "reader"),
            missing=missing_copier,
        ),
    ),
    topics=(TopicSpec(name=TOPIC, config={"min.insync.replicas": "2"}),),
    prepare=fetch_parts,
    submit=require_compatibility,
    remaining=uncopied_values,
    outputs=read_outputs,
    expected=lambda _scenario: EXPECTED,
    variants=(VOLATILE,),
)
