"""Property files as Apache Kafka 3.9.1 reads them, all in one JVM."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.probes import probe

OK = "ok"


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of one file: `ok` or the error, the raw properties, the values in effect."""

    said: str
    raw: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def accepted(self) -> bool:
        return self.said == OK


def read_all(files: Sequence[Path], variables: Mapping[str, str] | None = None) -> list[Reading]:
    """One reading each, with these variables in the environment."""
    done = subprocess.run(
        [*probe("PropertyProbe"), "files"],
        input="".join(f"{file}\n" for file in files).encode(),
        capture_output=True,
        timeout=280,
        check=False,
        env={**os.environ, **(variables or {})},
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(files)
    return [_reading(line) for line in lines]


def definitions() -> dict[str, tuple[str, str, str, bool]]:
    """Type, default, validator and whether it is internal, of every setting."""
    done = subprocess.run(
        [*probe("PropertyProbe"), "keys"], capture_output=True, text=True, check=True
    )
    rows = (line.split("|") for line in done.stdout.splitlines())
    return {
        name: (kind, default, check, hidden == "true")
        for name, kind, default, check, hidden in rows
    }


def _reading(line: str) -> Reading:
    verdict, count, *rest = (_decode(field) for field in line.split(" "))
    raw, values = rest[: 2 * int(count)], rest[2 * int(count) :]
    return Reading(verdict, _pairs(raw), _pairs(values))


def _pairs(fields: Sequence[str]) -> dict[str, str]:
    return dict(zip(fields[::2], fields[1::2], strict=True))


def _decode(field: str) -> str:
    return "" if field == "-" else base64.b64decode(field).decode()
