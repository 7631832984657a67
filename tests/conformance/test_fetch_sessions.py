"""Incremental fetches of consumers (KIP-227): by names up to version 12, by ids from 13 on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.fetching import STRANGE_ID
from tests.conformance.moves import is_deleted
from tests.conformance.records import batch, produce
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.messages import DeleteTopicsRequest, FetchRequest

VERSIONS = [7, 12, 13, 17]
Asked = tuple[str, int, int]  # topic, partition, offset


class Reader:
    """A consumer on one side: it remembers its session as a client does."""

    def __init__(self, side: Side, version: int) -> None:
        self.side, self.version = side, version
        self.session, self.epoch = 0, 0

    def fetch(
        self, asked: Sequence[Asked] = (), forget: Sequence[tuple[str, int]] = (), **more: Any
    ) -> Any:
        """The answer, session ids as whether there is one."""
        request = FetchRequest(
            **{
                "max_wait_ms": 20, "min_bytes": 1, "max_bytes": 1 << 20,
                "session_id": self.session, "session_epoch": self.epoch, **more,
            },
            topics=[
                FetchRequest.FetchTopic(
                    topic=topic,
                    topic_id=self.side.ids.get(topic, STRANGE_ID),
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                    ],
                )
                for topic, index, offset in asked
            ],
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(
                    topic=topic,
                    topic_id=self.side.ids.get(topic, STRANGE_ID),
                    partitions=[index],
                )
                for topic, index in forget
            ],
        )  # fmt: skip
        answer = self.side.ask(request, self.version)
        if answer == CLOSED:
            return answer
        if self.epoch == 0:
            self.session = answer["session_id"]
        if self.epoch >= 0 and answer["error_code"] == "NONE":
            self.epoch += 1
        known = {0: "none", self.session: "ours"}
        answer["session_id"] = known.get(answer["session_id"], "another")
        return answer


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    """Four partitions led by 1; three batches each in 0 and 1."""
    name = pair.name("in-session")
    pair.run_on_both(lambda side: side.create(name, [(1,)] * 4))
    for n in range(3):
        for partition in (0, 1):
            data = batch([b"%d" % n])
            pair.run_on_both(
                lambda side, d=data, p=partition: side.ask(produce(name, d, partition=p), 9)
            )  # type: ignore[misc]
    return name


@pytest.mark.parametrize("version", VERSIONS)
def test_incremental_response_has_changed_partitions_alone(pair: Pair, version: int) -> None:
    """A full fetch, an empty one, records, then forgotten and added partitions."""
    name = pair.name("news")
    pair.run_on_both(lambda side: side.create(name, [(1,)] * 3))

    def story(side: Side) -> Any:
        reader = Reader(side, version)
        answers = [reader.fetch([(name, 0, 0), (name, 1, 0), (name, 2, 0)]), reader.fetch()]
        for partition in (2, 1):
            side.ask(produce(name, batch([b"a"]), partition=partition), 9)
        answers += [reader.fetch(), reader.fetch(), reader.fetch([(name, 1, 1)])]
        answers += [reader.fetch([(name, 2, 1)]), reader.fetch(forget=[(name, 1), (name, 7)])]
        side.ask(produce(name, batch([b"b"]), partition=1), 9)
        answers += [reader.fetch(), reader.fetch([(name, 1, 1)]), reader.fetch([(name, 0, 99)])]
        answers += [reader.fetch(), reader.fetch([(name, 0, 0)])]
        answers += [reader.fetch(forget=[(name, 0), (name, 1), (name, 2)]), reader.fetch()]
        return [plain_answer(answer) for answer in answers]

    pair.assert_same(story)


def plain_answer(answer: Any) -> Any:
    """The times within batches are each side's own."""
    if answer != CLOSED:
        for topic in answer["responses"]:
            for partition in topic["partitions"]:
                partition["records"] = len(partition["records"] or b"")
    return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_session_with_unknown_partitions_is_answered_alike(
    pair: Pair, topic: str, version: int
) -> None:
    def story(side: Side) -> Any:
        reader = Reader(side, version)
        asked = [("never-there", 0, 0), (topic, 9, 0), (topic, 0, 0)]
        return [reader.fetch(asked), reader.fetch(), reader.fetch([(topic, 0, 3)]), reader.fetch()]

    pair.assert_same(story)


@pytest.mark.parametrize("again", [False, True], ids=["for good", "and made again"])
@pytest.mark.parametrize("version", [12, 13])
def test_session_with_a_deleted_topic_is_answered_alike(
    pair: Pair, topic: str, version: int, again: bool
) -> None:
    """An open session keeps the topic's name; a new one has its id alone."""
    gone = pair.name("gone")

    def story(side: Side) -> Any:
        side.create(gone, [(1,)])
        reader = Reader(side, version)
        asked = [(gone, 0, 0), (topic, 3, 0)]
        answers = [reader.fetch(asked)]
        request = DeleteTopicsRequest(topic_names=[gone], timeout_ms=10_000)
        side.get(request, 5, to=side.controller())
        side.until(lambda: is_deleted(side, gone))
        if again:
            known = side.ids[gone]
            side.create(gone, [(1,)])
            side.ids[gone] = known
        answers += [reader.fetch(), reader.fetch([(gone, 0, 1)]), reader.fetch()]
        fresh = Reader(side, version)
        return [*answers, fresh.fetch(asked), fresh.fetch()]

    pair.assert_same(story)


@pytest.mark.parametrize("version", VERSIONS)
def test_session_epochs_are_checked_alike(pair: Pair, topic: str, version: int) -> None:
    """Wrong epochs end nothing; the final epoch ends the session; a full fetch replaces it."""

    def story(side: Side) -> Any:
        reader = Reader(side, version)
        answers = [reader.fetch([(topic, 3, 0)])]
        for epoch in (2, 7, 1, 1, 2):
            reader.epoch = epoch
            answers.append(reader.fetch())
        reader.epoch = 0
        old = reader.session
        answers += [reader.fetch([(topic, 3, 0)]), reader.fetch()]
        assert reader.session != old
        answers.append(reader.fetch(session_id=old))
        reader.epoch = -1
        answers += [reader.fetch([(topic, 3, 0)])]
        reader.epoch = 2
        return [*answers, reader.fetch()]

    pair.assert_same(story)


@pytest.mark.parametrize(("begun", "then"), [(12, 13), (17, 12), (13, 17), (7, 12)])
def test_session_cannot_mix_ids_and_names(pair: Pair, topic: str, begun: int, then: int) -> None:
    def story(side: Side) -> Any:
        reader = Reader(side, begun)
        answers = [reader.fetch([(topic, 3, 0)])]
        reader.version = then
        return [*answers, reader.fetch([(topic, 3, 0)])]

    pair.assert_same(story)


def test_partitions_with_records_move_to_the_end_of_a_session(pair: Pair, topic: str) -> None:
    """With room for one batch an answer, partitions alternate."""

    def story(side: Side) -> Any:
        reader = Reader(side, 12)
        asked = [(topic, 0, 0), (topic, 1, 0)]
        answers = [reader.fetch(asked, max_bytes=1)]
        for _ in range(3):
            answers.append(reader.fetch(max_bytes=1))
        return [[p["partition_index"] for r in answer["responses"] for p in r["partitions"]
                 if p["records"]] for answer in answers]  # fmt: skip

    assert pair.assert_same(story)[1:] == [[0], [1], [0]], "a full fetch does not change the order"


def test_partition_requested_twice_keeps_its_first_place(pair: Pair, topic: str) -> None:
    """The later request counts, at the place of the first."""

    def story(side: Side) -> Any:
        return Reader(side, 12).fetch([(topic, 0, 0), (topic, 3, 0), (topic, 0, 2)])

    pair.assert_same(story)


@pytest.mark.parametrize("version", [4, 6])
def test_old_versions_open_no_session(pair: Pair, topic: str, version: int) -> None:
    pair.assert_same(lambda side: Reader(side, version).fetch([(topic, 3, 0)]))
