"""Kafka Connect with Debezium's JDBC sink: a topic into a table of PostgreSQL.

The sink's delivery is at least once. It writes with `insert.mode=upsert` and the record's topic,
partition and offset as primary key, so a record that it writes again replaces its own row: every
record is one row, as often as workers and the database die.
"""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.clients.applications.connect import database, internal_topics, workers
from urteil.harness.clients.applications.connect.lines import read_line
from urteil.harness.clients.applications.declaration import Application, Context
from urteil.harness.clients.applications.progress import uncommitted_offsets
from urteil.harness.clients.promises import EXACTLY_ONCE
from urteil.harness.dependencies.connect import connect_folder, jdbc_folder
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario

SINK, TABLE = "table-sink", "records"
EXPECTED = """
SELECT 'table' AS sink, i.topic || '-' || i.partition || '@' || i.off AS key, i.value_id AS value,
  'each' AS mode, 1 AS due FROM inputs i
"""
UPSERT = {"insert.mode": "upsert", "primary.key.mode": "kafka"}
INSERT = {"insert.mode": "insert", "primary.key.mode": "none"}
"""The variant `insert`: without a key, a record that is written again is a second row."""


def _sink(context: Context) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": "2",
        "topics": ",".join(context.inputs),
        "connection.url": database.url(context),
        "connection.username": database.ROLE,
        "connection.password": database.ROLE,
        "table.name.format": TABLE,
        "schema.evolution": "basic",
        "consumer.override.auto.offset.reset": "earliest",
        **(INSERT if workers.variant(context) == "insert" else UPSERT),
        **workers.LINE,
        "transforms": "line,row",
        "transforms.row.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.row.field": "line",
    }


def _prepare(scenario: Scenario) -> None:
    connect_folder(workers.version(scenario))
    jdbc_folder()
    database.programs()


def _plugins(scenario: Scenario) -> list[str]:
    return [workers.lab_plugins(scenario), str(jdbc_folder())]


def _submit(context: Context) -> None:
    workers.create_connectors(context, {SINK: _sink(context)})


def _find_remaining(context: Context) -> object:
    """Tasks that do not run, or records that the sink has not committed."""
    restarted = workers.restart_failed(context, (SINK,))
    return restarted or uncommitted_offsets(context, group=f"connect-{SINK}")


def _outputs(context: Context) -> Iterator[Output]:
    """The rows of the table. Removes the database afterwards, since its files are large."""
    with database.reopen(context):
        rows = database.query(context, f"SELECT line FROM {TABLE}")
    database.remove(context)
    for number, text in enumerate(rows, 1):
        line = read_line(context.run, text)
        yield Output(
            sink="table",
            position=number,
            key=line.place if line else f"damaged row {number}",
            value=line.value_id if line else text[:200],
            value_id=line.value_id if line else None,
        )
    yield from internal_topics.configurations(context, context.topic("config"))


APPLICATION = Application(
    name="connect-database",
    about="Kafka Connect copies the input into a table of PostgreSQL.",
    processes=(database.server(), workers.workers(_plugins)),
    promise=EXACTLY_ONCE,
    topics=workers.TOPICS,
    options=(workers.ConnectOptions,),
    prepare=_prepare,
    submit=_submit,
    remaining=_find_remaining,
    outputs=_outputs,
    expected=lambda _scenario: f"{EXPECTED} UNION ALL {internal_topics.CONFIGURATIONS}",
    leader=workers.leader,
    acts={
        "reconfigure-sink": workers.reconfigure(SINK, {"tasks.max": "3"}),
        "restart-sink": workers.restart_task(SINK, 0),
    },
    variants=("insert",),
)
