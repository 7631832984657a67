"""Flink SQL: `INSERT INTO ... SELECT` from topic to topic, exactly once."""

from __future__ import annotations

from urteil.harness.clients.applications.declaration import Application, Context
from urteil.harness.clients.applications.flink_application import (
    FORGETFUL,
    fetch_parts,
    flink_process,
    sink,
    source,
)
from urteil.harness.clients.applications.progress import uncopied_values
from urteil.harness.clients.promises import EXACTLY_ONCE


def script(context: Context) -> str:
    """The tables and the copy."""
    return (
        source(context, "records", context.inputs[0], "key BYTES, `value` BYTES")
        + sink(context, "copies", context.outputs[0], "BYTES")
        + "INSERT INTO copies SELECT key, `value` FROM records;"
    )


APPLICATION = Application(
    name="flink-sql",
    about="Flink SQL copies a topic to another one, exactly once by checkpoints and transactions",
    promise=EXACTLY_ONCE,
    is_ordered=True,
    processes=(flink_process(script),),
    prepare=fetch_parts,
    remaining=uncopied_values,
    variants=(FORGETFUL,),
)
