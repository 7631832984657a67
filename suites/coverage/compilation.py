"""The broker's modules compiled with probes. The code is cached beside Python's own."""

from __future__ import annotations

import importlib.util
import marshal
import os
from pathlib import Path
from types import CodeType

from urteil.suites.coverage import probes
from urteil.suites.coverage.line_files import digest_of
from urteil.suites.source_hook import BROKER, relative

TAG = "probes"


def compile_broker() -> None:
    """Fill the cache, so that the brokers of a run start as fast as without probes."""
    for path in BROKER.rglob("*.py"):
        compile_with_probes(path)


def compile_with_probes(path: Path) -> CodeType:
    """The code of a source file with its probes. A cache that cannot be written is no error."""
    source = path.read_text()
    digest = digest_of(source)
    cache = Path(importlib.util.cache_from_source(str(path), optimization=TAG))
    if (code := _read_cache(cache, digest)) is None:
        tree = probes.with_probes(source, relative(path), digest)
        code = compile(tree, str(path), "exec", dont_inherit=True)
        _keep(cache, digest, code)
    return code


def _head(digest: str) -> bytes:
    return importlib.util.MAGIC_NUMBER + _VERSION + digest.encode()


_VERSION = digest_of(Path(probes.__file__).read_text()).encode()


def _read_cache(cache: Path, digest: str) -> CodeType | None:
    head = _head(digest)
    try:
        content = cache.read_bytes()
        if not content.startswith(head):
            return None
        code = marshal.loads(content[len(head) :])
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return code if isinstance(code, CodeType) else None


def _keep(cache: Path, digest: str, code: CodeType) -> None:
    part = cache.with_suffix(f".{os.getpid()}")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(_head(digest) + marshal.dumps(code))
        part.replace(cache)
    except OSError:
        part.unlink(missing_ok=True)
