"""Import of a history of `jepsen.tests.kafka` as the evidence of a run, judged without a cluster.

A key becomes a topic `kKEY` of one partition, a process the client `jPROCESS`, a value the record
RUN/kKEY/VALUE. Jepsen does not record replicas, elections and settings: these tables are withheld,
and checks that need them are not judged. A partition is known as far as a process polled over it.
An acknowledged record elsewhere is neither lost nor found, and makes the run UNKNOWN, unless
`:debug-topic-partitions` reported the end to a process that had polled from the beginning.
"""

from __future__ import annotations

import gc
import json
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from urteil.harness.evidence.fault_effects import named_effects
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.imports.jepsen.evidence_rows import BOOT, Import, IsTransactional
from urteil.harness.imports.jepsen.operations import (
    NEMESIS,
    STEPS,
    HistoryError,
    Row,
    history_in,
    pairs,
    place_of,
    sent_value,
    show_value,
    steps_of,
)
from urteil.harness.scenario import (
    IMPORTED,
    ClusterSpec,
    Phase,
    RunFacts,
    Scenario,
    TopicFact,
    WorkloadSpec,
    save,
)
from urteil.harness.verify.derived.partitions import LOG
from urteil.harness.verify.evidence import write_rows

GUARANTEES = ("lost_write", "inconsistent_offset", "duplicate")
WITHHELD = ("replicas", "logs", "states")
POLLED = ("reads", "passes")
"""Tables that are empty without any poll."""
HEALS = re.compile(r"heal|stop|start-all|resume|cont|restart|recover|reset|none")

__all__ = ["HistoryError", "history_in", "load"]


def load(
    path: Path,
    run_dir: Path,
    *,
    acks: int = -1,
    idempotent: bool = True,
    isolation: str = "read_uncommitted",
    command: str = "",
) -> int:
    """Make `run_dir` a run of the history at `path`. Returns the number of operations.

    `acks`, `idempotent` and `isolation` are the clients' settings, which a history does not
    contain. Raises HistoryError with the line or operation that is invalid; nothing is written
    then.
    """
    made = not run_dir.exists()
    evidence = run_dir / "evidence"
    settings = {"acks": acks, "idempotent": idempotent, "isolation": isolation}
    try:
        with without_cycle_collector():
            history, count, nemesis = _read(path, evidence, settings)
            clients = history.finish()
        if not history.sends.rows:
            raise HistoryError(f"{path}: no operation :send or :txn sends anything; expected a "
                               "history of jepsen.tests.kafka")  # fmt: skip
        if twice := history.repeated_hashes():
            check_unique(path, history, twice)
    except HistoryError:
        shutil.rmtree(run_dir if made else evidence)
        raise
    end_ns = max(reader.end_ns for reader in history.readers.values())
    begin_ns = min(reader.begin_ns for reader in history.readers.values())
    _describe(history, run_dir, path, command, (begin_ns, end_ns))
    small = {"clients": clients, "faults": _faults(nemesis, end_ns)}
    small["manifest"] = [
        {"file": f"evidence/{name}", "kind": "table", "rows": rows, "ended_properly": True}
        for name, rows in ({**history.counts(), "clients": len(clients)}).items()
    ]
    for table in SCHEMAS:
        if not (evidence / table).exists():
            rows = [{"run": history.run} | row for row in small.get(table, ())]
            write_rows(evidence / table, SCHEMAS[table], rows)
    return count


@contextmanager
def without_cycle_collector() -> Iterator[None]:
    """Disable the cycle collector for the block: rows have no cycles, and it would visit each of
    them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(path: Path, evidence: Path, settings: dict[str, Any]) -> tuple[Import, int, list[Row]]:
    """The tables of the clients' operations, the number of operations, and those of the nemesis.

    A later operation may show that operations are transactions: then everything is read again.
    """
    run, nemesis, count = secrets.token_hex(4), list[Row](), 0
    history = Import(evidence, run, **settings)
    try:
        for invoked, done in pairs(path):
            count += 1
            if done["process"] == NEMESIS:
                nemesis.append(done)
            else:
                history.take(invoked, done)
    except IsTransactional:
        history.finish()
        return _read(path, evidence, settings | {"transactional": True})
    return history, count, nemesis


def check_unique(path: Path, history: Import, hashes: set[int]) -> None:
    """Raise HistoryError for a value that was sent twice, among those with these hashes."""
    writers: dict[str, Row] = {}
    for invoked, done in pairs(path):
        if done["f"] not in STEPS or done["process"] == NEMESIS:
            continue
        for step in steps_of(invoked, done):
            value_id = history.value_of(step) if step[0] == "send" else ""
            if hash(value_id) not in hashes or not value_id:
                continue
            before = writers.setdefault(value_id, done)
            if before is not done:
                raise HistoryError(
                    f"{place_of(done)} sends {show_value(sent_value(step)[1])} to key "
                    f"{show_value(step[1])}, as {place_of(before)} did: "
                    "values are identified by key and value, and must be unique"
                )


def _describe(
    history: Import, run_dir: Path, path: Path, command: str, span_ns: tuple[int, int]
) -> None:
    """Write the run's facts and scenario."""
    topics = [
        TopicFact(
            name=key,
            topic_id=key,
            partitions=1,
            replication_factor=1,
            config={LOG: "reads"} | history.end_of(key),
        )
        for key in history.keys
    ]
    facts = RunFacts(
        run=history.run, seed=0, scenario="jepsen", target="jepsen", runtime=IMPORTED, boot_id=BOOT,
        command=command, versions={"history": path.name}, topics=topics,
        phases=[Phase(name="before", begin_ns=span_ns[0], end_ns=span_ns[1])],
        withheld=[*WITHHELD, *(name for name in POLLED if not history.counts()[name])],
    )  # fmt: skip
    scenario = Scenario(
        name="jepsen", about=f"a history of jepsen.tests.kafka, {path.name}",
        cluster=ClusterSpec(brokers=1), workload=WorkloadSpec(
            kind="jepsen", acks=history.acks, idempotent=history.idempotent,
            isolation=history.isolation, client="jepsen", rate_records_per_s=0, in_flight=5),
        guarantees=GUARANTEES, minimum_acks=1, target="jepsen", runtime=IMPORTED,
    )  # fmt: skip
    save(run_dir / "scenario.json", scenario)
    save(run_dir / "run.json", facts)


def _faults(nemesis: list[Row], end_ns: int) -> list[Row]:
    """Faults of the nemesis: from one act to the next that heals, or to the end of the history."""
    until_ns, faults = end_ns, list[Row]()
    for op in reversed(nemesis):
        name = str(op["f"])
        if HEALS.search(name):
            until_ns = op["time"]
        elif op["type"] != "invoke":
            faults.append(_fault(op, until_ns))
    return faults[::-1]


def _fault(op: Row, until_ns: int) -> Row:
    return {
        "fault": str(op["f"]),
        "targets": '["cluster"]',
        "begin_ns": op["time"],
        "end_ns": until_ns,
        "healed_ns": until_ns,
        "acted": True,
        "effects": json.dumps(sorted(named_effects(str(op["f"])))),
        "proof": f"the history: {show_value(op.get('value'))[:200]}",
    }
