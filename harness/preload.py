"""Work that a run does in advance during its load: imports, and the parsing of queries.

Processors are idle for most of a load, and the judgement follows at once. So a thread imports the
modules of judgement and report, and parses the guarantees' queries. It has no other effect: without
it, the same work is done later. Its priority is the process's own: a thread of lower priority keeps
the interpreter's lock while it waits for a busy processor, and every other thread with it.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from contextlib import suppress

JUDGING = ("urteil.harness.verify.judgement", "urteil.harness.verify.self_test")


class Preload:
    """Imports `modules` and parses every guarantee's queries for DuckDB, in a thread of its own."""

    def __init__(self, modules: Sequence[str] = (), *, queries: bool = True) -> None:
        self._modules = (*JUDGING, *modules)
        self._queries = queries
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="preload", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread finish its current step, and wait for its end."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        for module in self._modules:
            if self._over.is_set():
                return
            with suppress(ImportError):  # its user reports what is missing
                importlib.import_module(module)
        if self._queries:
            self._parse()

    def _parse(self) -> None:
        import duckdb

        from urteil.harness.verify.engines.engine import parse
        from urteil.harness.verify.guarantees import GUARANTEES
        from urteil.harness.verify.self_test import FINDINGS

        with duckdb.connect() as connection:
            for guarantee in GUARANTEES.values():
                for query in (guarantee.tally(), guarantee.first(FINDINGS)):
                    if self._over.is_set():
                        return
                    with suppress(duckdb.Error):  # its check reports what is wrong
                        parse(connection, query)
