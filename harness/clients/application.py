"""The application of a pipeline: the user's own program, and when it has copied everything.

A shell starts it with its settings in the environment. It is killed with all its children. Its
output goes to `logs/client-<name>.log`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from operator import not_
from pathlib import Path

from urteil.chaos.waiting import until
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.clients.payload import COPY
from urteil.harness.evidence.journal import JournalReader, Ok, Poll
from urteil.harness.scenario import Scenario, TopicFact

EXAMPLE = f"{shlex.quote(sys.executable)} -m urteil.harness.clients.copy_app"
PATIENCE_S = 30.0
"""Without a new copy for this time, the missing records count as lost."""

POLL_S = 0.5


def command(scenario: Scenario, bootstrap: Sequence[str], name: str) -> list[str]:
    """The command that starts the application as client `name`."""
    load = scenario.workload
    source, sink = (topic.name for topic in load.topics[:2])
    settings = {
        "URTEIL_BOOTSTRAP_SERVERS": ",".join(bootstrap),
        "URTEIL_INPUT_TOPIC": source,
        "URTEIL_OUTPUT_TOPIC": sink,
        "URTEIL_GROUP": load.group,
        "URTEIL_CLIENT_ID": name,
    }
    program = ApplicationOptions.of(load).app or EXAMPLE
    return ["env", *(f"{key}={value}" for key, value in settings.items()), "/bin/sh", "-c", program]


def await_copied(
    producers: Sequence[Path], readers: Sequence[Path], run: str, *, deadline_s: float
) -> int:
    """Wait until readers saw a copy of every acknowledged record, or no new copy for PATIENCE_S.

    Returns the number of missing copies; the verdict judges them.
    """
    acked = {value for path in producers for value in _acknowledged_ids(path, run)}
    missing = until(
        lambda: acked - {value for path in readers for value in _copied_ids(path)},
        not_,
        deadline_s=deadline_s,
        poll_s=POLL_S,
        patience_s=PATIENCE_S,
    )
    return len(missing)


def _acknowledged_ids(path: Path, run: str) -> list[str]:
    entries = JournalReader(path) if path.exists() else ()
    return [f"{run}/{path.stem}/{entry.op}" for entry in entries if isinstance(entry, Ok)]


def _copied_ids(path: Path) -> list[str]:
    entries = JournalReader(path) if path.exists() else ()
    return [
        got.value_id.removeprefix(COPY)
        for entry in entries
        if isinstance(entry, Poll)
        for part in entry.slices
        for got in part.records
        if got.value_id is not None and got.value_id.startswith(COPY)
    ]


def check_topics(topics: Sequence[TopicFact]) -> None:
    """ValueError unless there is one topic to copy from and one to copy to."""
    kinds = [topic.copies for topic in topics]
    if kinds != [False, True]:
        raise ValueError("a pipeline needs two topics: its input, and its output with copies=true")


def _count(scenario: Scenario) -> int:
    load = scenario.workload
    return ApplicationOptions.of(load).apps if load.kind == "pipeline" else 0


KIND = ClientKind(
    name="app",
    about="An instance of the user's application, a program of its own without a journal.",
    stage=Stage.APPLICATION,
    judged_by=("unprocessed", "processed_twice"),
    prefix="a",
    count=_count,
    command=command,
    options=(ApplicationOptions,),
)
