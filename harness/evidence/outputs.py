"""The file `outputs.jsonl` of a run: what an application wrote outside of the run's own topics.

The file is written atomically, so that a failed read does not look like a missing result.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

FILE = "outputs.jsonl"


class Output(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row that an application wrote: a record of a result topic, a line of a file, a row of a
    database. The fields are columns of the evidence table `outputs`."""

    sink: str
    position: int
    key: str | None = None
    value: str | None = None
    value_id: str | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


def write_outputs(run_dir: Path, application: str, outputs: Iterable[Output]) -> None:
    """Write all rows."""
    part = run_dir / f"{FILE}.part"
    with part.open("wb") as file:
        for output in outputs:
            row = {"application": application} | msgspec.structs.asdict(output)
            file.write(msgspec.json.encode(row) + b"\n")
    part.replace(run_dir / FILE)
