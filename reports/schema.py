"""The JSON Schema of `result.json`: `python -m urteil.reports.schema` prints it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from urteil.harness.verify.result import Result

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def result_schema() -> dict[str, Any]:
    """The schema, JSON Schema draft 2020-12; docs/reference/result.schema.json is this text."""
    return {"$schema": DIALECT, "title": "The verdict of a run of Urteil"} | msgspec.json.schema(
        Result
    )


def text() -> str:
    """The published text of the schema."""
    return json.dumps(result_schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")
