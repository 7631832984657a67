"""Judges a tiny synthetic run on Spark before the real one, to warm up the JVM."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify import judgement, shared_tables, synthetic
from urteil.harness.verify.check import Places, check
from urteil.harness.verify.engines.engine import Spark, open_views
from urteil.harness.verify.guarantees import GUARANTEES

REHEARSED = 8
"""The number of guarantees. They load the classes that the others need too."""

SHAPE = synthetic.Shape(records=60, partitions=1, passes=1)


def rehearse(session: Any, enough: threading.Event) -> None:
    """Judge the run on `session`, whose views it replaces. Stops early when `enough` is set."""
    with tempfile.TemporaryDirectory(prefix="urteil-rehearsal-") as folder:
        run_dir, work = Path(folder), Path(folder) / "work"
        scenario, facts = synthetic.scenario(SHAPE), synthetic.facts(SHAPE)
        synthetic.write_run(run_dir, synthetic.healthy(SHAPE), scenario, facts)
        derived = judgement.prepare(run_dir, scenario, facts)
        engine = Spark(session, work, owned=False)
        open_views(engine, run_dir, derived)
        shared_tables.build(engine, logless=derived.logless, enough=enough.is_set)
        for guarantee in list(GUARANTEES.values())[:REHEARSED]:
            if enough.is_set():
                return
            check(engine, guarantee, Places(derived), set(SCHEMAS))
