"""Published reports as histories: what clients saw, written by hand in the form of Jepsen.

The reports are about releases that the lab cannot run. `histories/broken/NAME/history.edn`
has the operations of the report's finding, as few as show it, and `histories/fixed/NAME/` the same
operations without the bug. `urteil import` judges both: the first is FAIL by `guarantee`, the
second PASS. The numbers are those of the report where it has some.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "histories"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedHistory:
    """A finding of others and the guarantee whose violation it is. `also`: further guarantees that
    the same operations violate."""

    name: str
    report: str
    link: str
    about: str
    guarantee: str
    sub_kind: str
    also: tuple[str, ...] = ()

    @property
    def broken(self) -> Path:
        """The history with the bug."""
        return FOLDER / "broken" / self.name / "history.edn"

    @property
    def fixed_history(self) -> Path:
        """The history without it."""
        return FOLDER / "fixed" / self.name / "history.edn"


_REDPANDA = "Jepsen: Redpanda 21.10.1"
_BUFSTREAM = "Jepsen: Bufstream 0.1.0"
_REDPANDA_LINK = "https://jepsen.io/analyses/redpanda-21.10.1"
_BUFSTREAM_LINK = "https://jepsen.io/analyses/bufstream-0.1.0"
_ISSUES = "https://issues.apache.org/jira/browse/"
_REDPANDA_ISSUES = "https://github.com/redpanda-data/redpanda/"

PUBLISHED_HISTORIES = (
    PublishedHistory(
        name="redpanda-inconsistent-offset",
        report=f"{_REDPANDA}, issue 3003",
        link=_REDPANDA_LINK,
        about="Around a pause of the leader, two producers get the same offset acknowledged.",
        guarantee="inconsistent_offset",
        sub_kind="read",
        also=("lost_write",),
    ),
    PublishedHistory(
        name="redpanda-duplicate",
        report=f"{_REDPANDA}, issue 3039",
        link=_REDPANDA_LINK,
        about="An idempotent producer retries over a kill, and its record is in the log twice.",
        guarantee="duplicate",
        sub_kind="pass",
    ),
    PublishedHistory(
        name="redpanda-aborted-read",
        report=f"{_REDPANDA}, issue 3036",
        link=_REDPANDA_LINK,
        about="A reader of committed records polls a record of a transaction that aborted.",
        guarantee="aborted_read",
        sub_kind="read",
        also=("torn_txn",),
    ),
    PublishedHistory(
        name="redpanda-circular-information-flow",
        report=f"{_REDPANDA}, issue 3036",
        link=_REDPANDA_LINK,
        about="Each of two transactions polls the record that the other one sends.",
        guarantee="g1c",
        sub_kind="g1c",
    ),
    PublishedHistory(
        name="redpanda-stale-messages",
        report=f"{_REDPANDA}, lost or stale messages in 21.11.2",
        link=_REDPANDA_LINK,
        about="After kills and changes of membership, no final poll has the acknowledged messages "
        "at the end of a key, and the broker reports an end below them.",
        guarantee="unseen",
        sub_kind="beyond the end",
    ),
    PublishedHistory(
        name="redpanda-lost-transaction",
        report="Jepsen's tests of Redpanda, the example of their README",
        link="https://github.com/jepsen-io/redpanda",
        about="A committed record was acknowledged at offset 1114, and every process that polls "
        "goes from 1110 to 1117.",
        guarantee="lost_write",
        sub_kind="tail",
    ),
    PublishedHistory(
        name="redpanda-late-abort-marker",
        report="Redpanda, pull request 3232",
        link=f"{_REDPANDA_ISSUES}pull/3232",
        about="The late abort marker of an older epoch also aborts the next transaction of the "
        "producer id, whose commit was acknowledged.",
        guarantee="lost_write",
        sub_kind="tail",
    ),
    PublishedHistory(
        name="redpanda-tiered-aborted-read",
        report="Redpanda, issues 7043 and 7955",
        link=f"{_REDPANDA_ISSUES}issues/7955",
        about="A topic is recovered from tiered storage without its list of aborted transactions, "
        "and a reader of committed records polls an aborted one.",
        guarantee="aborted_read",
        sub_kind="read",
        also=("torn_txn",),
    ),
    PublishedHistory(
        name="bufstream-zero-offset",
        report=f"{_BUFSTREAM}, spurious zero offsets",
        link=_BUFSTREAM_LINK,
        about="A send is acknowledged at offset 0, where another record lies.",
        guarantee="misplaced_ack",
        sub_kind="elsewhere",
        also=("inconsistent_offset", "stale_append"),
    ),
    PublishedHistory(
        name="bufstream-lost-write",
        report=f"{_BUFSTREAM}, writes lost in healthy clusters",
        link=_BUFSTREAM_LINK,
        about="Without any fault, no poll has an acknowledged record, though it has the records "
        "before and after it.",
        guarantee="lost_write",
        sub_kind="tail",
    ),
    PublishedHistory(
        name="bufstream-stuck-consumer",
        report=f"{_BUFSTREAM}, stuck consumers",
        link=_BUFSTREAM_LINK,
        about="A consumer gets no further records, though the partition's end is above its "
        "position and another consumer has polled them.",
        guarantee="vanished_read",
        sub_kind="between passes",
    ),
    PublishedHistory(
        name="kafka-17754-torn-transaction",
        report=f"{_BUFSTREAM}, on Kafka and others; KAFKA-17754",
        link=f"{_ISSUES}KAFKA-17754",
        about="The late abort of a transaction ends the next one in its middle: half of a "
        "committed transaction is missing.",
        guarantee="torn_txn",
        sub_kind="missing",
        also=("lost_write",),
    ),
    PublishedHistory(
        name="kafka-17754-aborted-read",
        report=f"{_BUFSTREAM}, on Kafka and others; KAFKA-17754",
        link=f"{_ISSUES}KAFKA-17754",
        about="The late commit of a transaction commits a record of the next one, which its client "
        "aborts.",
        guarantee="aborted_read",
        sub_kind="read",
        also=("torn_txn",),
    ),
    PublishedHistory(
        name="kafka-17582-skip",
        report="KAFKA-17582, Java client 3.8.0",
        link=f"{_ISSUES}KAFKA-17582",
        about="After a transaction aborts, the consumer continues behind the records that it "
        "polled inside.",
        guarantee="poll_skip",
        sub_kind="gap",
        also=("vanished_read",),
    ),
    PublishedHistory(
        name="kafka-17582-rewind",
        report="KAFKA-17582, Java client 3.8.0",
        link=f"{_ISSUES}KAFKA-17582",
        about="After a transaction aborts, the consumer goes back further than that transaction.",
        guarantee="nonmonotonic_poll",
        sub_kind="reads",
        also=("duplicate",),
    ),
    PublishedHistory(
        name="kafka-0.8-unclean-election",
        report="Jepsen: Kafka 0.8 beta",
        link="https://aphyr.com/posts/293-call-me-maybe-kafka",
        about="The ISR shrinks to the leader, which acknowledges writes and dies; a replica "
        "without them is elected.",
        guarantee="lost_write",
        sub_kind="tail",
        also=("inconsistent_offset", "stale_append"),
    ),
)
