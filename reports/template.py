"""Jinja templates of all pages; compiled templates are cached beside Python's bytecode."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

FOLDER = Path(__file__).parent / "templates"


def environment() -> jinja2.Environment:
    """An environment of these templates that escapes all values and rejects unknown names."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("urteil.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_Compiled(),
    )


class _Compiled(jinja2.BytecodeCache):
    """One cache file for each template, in the place of a module's bytecode.

    A template whose file cannot be read or written is compiled at each use.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError), _cache_path(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        path = _cache_path(bucket)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            with os.fdopen(handle, "wb") as file:
                bucket.write_bytecode(file)
            Path(part).replace(path)


def _cache_path(bucket: Bucket) -> Path:
    return Path(cache_from_source(str(FOLDER / f"{bucket.key}.py")))
