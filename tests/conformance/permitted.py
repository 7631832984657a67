"""What may differ between our answers and Apache Kafka's, each entry with its reason.

`OWN` are values that are each cluster's own: ids, times, addresses, sentences for people. What is
compared is whether there is one. `DEVIATIONS` are answers of ours that differ and stay so: both
answers stand there, and any other answer is a failure. An entry that excuses nothing is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from uuid import UUID

from tests.conformance.differences import NOTHING, Difference
from tests.conformance.questions.registry import Question

UNSET: tuple[Any, ...] = (None, "", -1, 0, b"", UUID(int=0), NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A field, as the end of its path, whose value is each cluster's own.

    `by_chance` says that the values, or the orders, may be equal as well, so that an entry that
    excuses nothing is not an error. `inside` narrows it to an element of a list, with all below it;
    with `may_lack` one side may have a value where the other has none, with `may_add` only ours,
    and null is not the same as empty.
    """

    field: str
    why: str
    subject: str = "*"
    by_chance: bool = False
    inside: str = ""
    may_lack: bool = False
    may_add: bool = False

    def excuses(self, question: Question, difference: Difference) -> bool:
        if not fnmatchcase(question.subject, self.subject) or not _ends(difference, self.field):
            return False
        if self.inside:
            return self.inside in difference.where
        if self.field.endswith("order") or self.may_lack:
            return True
        if self.may_add:
            return difference.answered not in UNSET
        return (difference.expected in UNSET) == (difference.answered in UNSET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Questions of a subject (`question` is a pattern of its text) to which ours says `ours` in a
    field and Apache Kafka `theirs`; both are compared as they are printed, `*` for any text.
    `follows` are fields that are other in consequence."""

    subject: str
    question: str
    field: str
    theirs: str
    ours: str
    why: str
    follows: tuple[str, ...] = ()

    def excuses(self, question: Question, difference: Difference) -> bool:
        if question.subject != self.subject or not fnmatchcase(question.text, self.question):
            return False
        if any(_ends(difference, field) for field in self.follows):
            return True
        return (
            _ends(difference, self.field)
            and fnmatchcase(repr(difference.expected), _literal(self.theirs))
            and fnmatchcase(repr(difference.answered), _literal(self.ours))
        )


Permitted = Own | Deviation


def _literal(text: str) -> str:
    """A pattern in which nothing but `*` has a meaning."""
    return text.replace("[", "[[]").replace("?", "[?]")


def _ends(difference: Difference, field: str) -> bool:
    return fnmatchcase(f".{difference.path}", f"*.{field}") or (not field and not difference.path)


def excuse(question: Question, difference: Difference) -> Permitted | None:
    """The entry that permits a difference."""
    entries: Iterable[Permitted] = (*OWN, *DEVIATIONS)
    return next((entry for entry in entries if entry.excuses(question, difference)), None)


OWN: tuple[Own, ...] = (
    Own(field="host", why="each cluster has loopback addresses of its own"),
    Own(field="port", why="free ports are chosen", by_chance=True),
    Own(field="cluster_id", why="drawn at random when a cluster first starts"),
    Own(field="topic_id", why="drawn at random when a topic is created"),
    Own(field="controller_id", why="the first broker to start is it", by_chance=True),
    Own(
        field="error_message",
        why="text for people; ours explains more often",
        may_add=True,
    ),
    Own(field="documentation", why="text for people"),
    Own(field="batch_index_error_message", why="text for people"),
    Own(
        field="producer_id",
        why="a counter, incremented by each request",
        may_lack=True,
        by_chance=True,
    ),
    Own(
        field="node_id",
        why="the leader of a group's log is random",
        by_chance=True,
        subject="FindCoordinator",
    ),
    Own(
        field="node_id",
        why="the leader of a group's log is random",
        by_chance=True,
        subject="Bodies",
    ),
    Own(field="usable_bytes", why="what the disk has left at that moment", by_chance=True),
    Own(field="session_id", why="drawn at random"),
    Own(field="log_append_time_ms", why="the clock at the time of the append"),
    Own(
        field="transaction_states",
        why="the transactions of other questions that this broker coordinates, by chance",
        by_chance=True,
        may_lack=True,
        subject="Bodies",
    ),
)

OF_THE_NODE = {
    "advertised.listeners": "an address of its own",
    "listeners": "an address of its own",
    "log.dirs": "a directory of its own",
    "zookeeper.connect": "an address of its own",
    "num.recovery.threads.per.data.dir": "the lab sets it for Java only",
    "log.cleaner.threads": "the lab sets it for Java only",
    "urteil.hosts.file": "a setting that only ours has",
    "urteil.metrics.listener": "a setting that only ours has",
}
OWN += tuple(
    Own(
        field="*",
        inside=f"configs[{name}]",
        why=why,
        subject="DescribeConfigs",
        by_chance=name == "zookeeper.connect",  # a name of its own with a port
    )
    for name, why in OF_THE_NODE.items()
)

UNANSWERED = (
    "Produce 3 and later with null for the records of a partition",
    "AlterConfigs of a resource twice",
    "OffsetFetch 8 and later without a group",
    "JoinGroup with two protocols of one name",
)
"""To these Apache Kafka fails inside and gives no answer at all, so that they are not asked."""

ORDERED = (
    "brokers", "configs", "topics", "partitions", "results", "responses", "partition_result",
    "replica_election_results", "results_by_partition", "results_by_topic_v3_and_below",
    "topic_results", "partition_responses",
)  # fmt: skip
OWN += tuple(
    Own(
        field=f"{name}.order",
        why="Apache Kafka uses the order of hash maps, ours that of the request or of names",
        by_chance=True,
    )
    for name in ORDERED
)

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        subject="CreateTopics",
        question="asked only: no replicas assigned",
        field="topics.error_code",
        theirs="'NONE'",
        ours="'INVALID_REPLICA_ASSIGNMENT'",
        why="such a topic can neither be used nor repaired",
        follows=("num_partitions", "replication_factor", "configs"),
    ),
    Deviation(
        subject="Bodies",
        question="ADD_PARTITIONS_TO_TXN: *",
        field="",
        theirs="'silent'",
        ours="*",
        why="Apache Kafka never answers a request without transactions; ours answers with none",
    ),
    Deviation(
        subject="Bodies",
        question="CONTROLLED_SHUTDOWN: *",
        field="error_code",
        theirs="'UNKNOWN_SERVER_ERROR'",
        ours="'BROKER_NOT_AVAILABLE'",
        why="Apache Kafka fails internally if no broker has the epoch; ours names the error",
    ),
    Deviation(
        subject="Bodies",
        question="LEADER_AND_ISR: everything twice",
        field="topics",
        theirs="*",
        ours="*",
        why="a topic twice in a rejected request: ours answers with it once",
    ),
    Deviation(
        subject="OffsetFetch",
        question="not the coordinator",
        field="topics",
        theirs="[]",
        ours="*NOT_COORDINATOR*",
        why="version 1 has errors of partitions only: Apache Kafka answers without partitions and "
        "error, which an old client reads as no offsets; ours names the error",
    ),
)
