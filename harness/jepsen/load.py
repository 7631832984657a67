"""A history of `jepsen.tests.kafka` as the evidence of a run, to be judged without a cluster.

A key becomes a topic `kKEY` of one partition, a process the client `jPROCESS`, a value the record
RUN/kKEY/VALUE. What Jepsen does not record (replicas, elections, settings) is withheld: checks that
need it are not judged. A partition is known as far as somebody polled over it: an acknowledged
record elsewhere is neither lost nor found, and the run is UNKNOWN for it, unless
`:debug-topic-partitions` told the end to a process that had polled from the beginning.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from urteil.harness.history.schema import SCHEMAS
from urteil.harness.jepsen.history import (
    HistoryError,
    Row,
    history_in,
    pairs,
    written_or,
)
from urteil.harness.jepsen.tables import BOOT, Import
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
from urteil.harness.verify.derived.parts import ENDS, LOG
from urteil.harness.verify.evidence import write_rows

GUARANTEES = ("lost_write", "inconsistent_offset", "duplicate")
WITHHELD = ("replicas", "logs", "states")
POLLED = ("reads", "passes")
"""Tables without a row where nobody polled anything."""
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
    """Make `run_dir` a run of the history at `path`; how many operations it has.

    `acks`, `idempotent` and `isolation` are the clients' settings, which a history does not tell.
    HistoryError names the line or operation that is not as expected; nothing is written then.
    """
    found = Import(secrets.token_hex(4), acks, idempotent, isolation)
    ops = list(pairs(path))
    found.take_all([pair for pair in ops if isinstance(pair[1]["process"], int)])
    nemesis = [done for _, done in ops if not isinstance(done["process"], int)]
    if not found.tables["sends"]:
        raise HistoryError(f"{path}: no operation :send or :txn sends anything; expected is a "
                           "history of jepsen.tests.kafka")  # fmt: skip
    found.finish()
    end_ns = max(reader.end_ns for reader in found.readers.values())
    begin_ns = min(reader.begin_ns for reader in found.readers.values())
    found.tables["faults"] = list(_faults(nemesis, end_ns))
    run_dir.mkdir(parents=True, exist_ok=True)
    _describe(found, run_dir, path, command, (begin_ns, end_ns))
    for table in SCHEMAS:
        rows = [{"run": found.run} | row for row in found.tables[table]]
        write_rows(run_dir / "evidence" / table, SCHEMAS[table], rows)
    return len(ops)


def _describe(
    found: Import, run_dir: Path, path: Path, command: str, span_ns: tuple[int, int]
) -> None:
    """What a run's folder says of itself beside the evidence."""
    topics = [
        TopicFact(
            name=key,
            topic_id=key,
            partitions=1,
            replication_factor=1,
            config={LOG: "reads", ENDS: "told" if key in found.ends else "unknown"},
        )
        for key in found.keys
    ]
    facts = RunFacts(
        run=found.run, seed=0, scenario="jepsen", target="jepsen", runtime=IMPORTED, boot_id=BOOT,
        command=command, versions={"history": path.name}, topics=topics,
        phases=[Phase(name="before", begin_ns=span_ns[0], end_ns=span_ns[1])],
        problems=list(found.unknown()),
        withheld=[*WITHHELD, *(name for name in POLLED if not found.tables[name])],
    )  # fmt: skip
    scenario = Scenario(
        name="jepsen", about=f"a history of jepsen.tests.kafka, {path.name}",
        cluster=ClusterSpec(brokers=1), workload=WorkloadSpec(
            kind="jepsen", acks=found.acks, idempotent=found.idempotent, isolation=found.isolation,
            client="jepsen", rate_records_per_s=0, in_flight=5),
        guarantees=GUARANTEES, minimum_acks=1, target="jepsen", runtime=IMPORTED,
    )  # fmt: skip
    save(run_dir / "scenario.json", scenario)
    save(run_dir / "run.json", facts)


def _faults(nemesis: list[Row], end_ns: int) -> Iterator[Row]:
    """What the nemesis did, from one act until the next that heals, or the history's end."""
    for number, op in enumerate(nemesis):
        name = str(op["f"])
        if HEALS.search(name) or op["type"] == "invoke":
            continue
        healed = (one["time"] for one in nemesis[number + 1 :] if HEALS.search(str(one["f"])))
        until_ns = next(healed, end_ns)
        yield {"fault": name, "targets": '["cluster"]', "begin_ns": op["time"], "end_ns": until_ns,
               "healed_ns": until_ns, "acted": True,
               "proof": f"the history: {written_or(op.get('value'))[:200]}"}  # fmt: skip
