"""The schemas and observations of the writer and the reader, and what a registry answers."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from urteil.harness.clients.applications.declaration import Context
from urteil.harness.clients.applications.programs.avro_copy import (
    Job,
    Observation,
    answers,
    observe,
    schema_text,
)
from urteil.harness.clients.applications.schema_registry import (
    API,
    REGISTRY,
    observations,
    other_schemas,
    unknown_ids,
)
from urteil.harness.scenarios.applications import SCHEMA_REGISTRY


@contextmanager
def registry(context: Context, schemas: dict[int, str]) -> Iterator[None]:
    """A registry with these schemas by id, on the context's port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/subjects"):
                self.send_response(200)
                self.end_headers()
                return
            schema = schemas.get(int(self.path.rpartition("/")[2]))
            self.send_response(404 if schema is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": schema}).encode())

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", context.port(REGISTRY)), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def context_in(folder: Path) -> Context:
    return Context(
        scenario=SCHEMA_REGISTRY,
        run="run",
        run_dir=folder,
        bootstrap=(),
        second_bootstrap=(),
        topics=(),
        journals=lambda _kind: [],
    )


def test_schema_evolves_by_optional_fields() -> None:
    columns = json.loads(schema_text(2))["fields"]
    assert [column["name"] for column in columns] == ["value", "optional0", "optional1"]
    assert all(column["default"] is None for column in columns[1:])


def test_id_that_the_registry_does_not_have_is_reported(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    with registry(context, {1: schema_text(0)}):
        assert unknown_ids(context, Counter({1: 30, 2: 4})) == {
            "schema id 2 is unknown": "4 records"
        }


def test_id_that_was_assigned_twice_is_reported(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    observations = [Observation(kind="assigned", schema_id=1, fields=0),
            Observation(kind="assigned", schema_id=2, fields=1),
            Observation(kind="refused")]  # fmt: skip
    with registry(context, {1: schema_text(0), 2: schema_text(3)}):
        assert list(other_schemas(context, observations)) == ["schema id 2 has another schema"]


def test_observations_of_all_sessions_are_kept(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    job = Job(
        role="writer", run="run", servers="", client="w1", group="g", source="", sink="",
        registry="", folder=str(context.process_folder("w1")),
    )  # fmt: skip
    observe(job, Observation(kind="assigned", schema_id=1))
    observe(job, Observation(kind="refused"))
    assert [observation.kind for observation in observations(context.folder)] == [
        "assigned",
        "refused",
    ]


def test_registry_answers_while_it_stands(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    url = f"http://{context.address(REGISTRY)}{API}"
    assert not answers(url)
    with registry(context, {}):
        assert answers(url)
