"""Property files as Apache Kafka 3.9.1 reads them, all in one JVM."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clients.tools import compile_java, java_folder
from urteil.harness.parts import cache_dir, java
from urteil.harness.parts.java import QUICK_START
from urteil.harness.parts.kafka import kafka_classpath
from urteil.harness.parts.part import installed

SOURCE = Path(__file__).parent / "programs" / "PropertyProbe.java"
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
        [*_command(), "files"],
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
    done = subprocess.run([*_command(), "keys"], capture_output=True, text=True, check=True)
    rows = (line.split("|") for line in done.stdout.splitlines())
    return {
        name: (kind, default, check, hidden == "true")
        for name, kind, default, check, hidden in rows
    }


def _command() -> list[str]:
    classpath = kafka_classpath()

    def compile_it(folder: Path) -> None:
        compile_java(SOURCE, java_folder("java", "3.9.1"), folder, libraries=Path(classpath).parent)

    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    folder = installed(cache_dir() / f"property-probe-{digest}", compile_it)
    return [java(), *QUICK_START, "-cp", f"{classpath}{os.pathsep}{folder}", SOURCE.stem]


def _reading(line: str) -> Reading:
    said, count, *rest = (_decoded(field) for field in line.split(" "))
    raw, values = rest[: 2 * int(count)], rest[2 * int(count) :]
    return Reading(said, _pairs(raw), _pairs(values))


def _pairs(fields: Sequence[str]) -> dict[str, str]:
    return dict(zip(fields[::2], fields[1::2], strict=True))


def _decoded(field: str) -> str:
    return "" if field == "-" else base64.b64decode(field).decode()
