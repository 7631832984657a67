"""Transactions: who may begin, add, end and write, and what the logs and offsets are then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.conformance.fetching import fetch
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled, spread
from tests.conformance.transactions import (
    Txn,
    add,
    begin,
    coordinator,
    end,
    init_request,
    new_producer,
    wait_until_settled,
)
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.batches import iter_batches, iter_records
from urteil.broker.wire.messages import (
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    WriteTxnMarkersRequest,
)

FIND = Subject("FindCoordinator", ApiKey.FIND_COORDINATOR)
INIT = Subject("InitProducerId of transactions", ApiKey.INIT_PRODUCER_ID)
ADD = Subject("AddPartitionsToTxn", ApiKey.ADD_PARTITIONS_TO_TXN)
OFFSETS = Subject("AddOffsetsToTxn", ApiKey.ADD_OFFSETS_TO_TXN)
END = Subject("EndTxn", ApiKey.END_TXN)
WRITE = Subject("Produce in transactions", ApiKey.PRODUCE)
MARKERS = Subject("WriteTxnMarkers", ApiKey.WRITE_TXN_MARKERS)

STRANGERS: dict[str, dict[str, Any]] = {
    "another producer id": {"producer_id": 4711},
    "an older epoch": {"epoch": -1},
    "a newer epoch": {"epoch": 9},
    "an unknown transactional id": {"name": "never-seen"},
    "an empty transactional id": {"name": ""},
}


# -- FindCoordinator, InitProducerId ------------------------------------------------------------


@FIND.question("of a transactional id", since=1)
def find(asker: Asker) -> Any:
    coordinator(asker.side, "a transactional id")
    keys = ["a transactional id", ""]
    return asker.ask(
        FindCoordinatorRequest(key="a transactional id", key_type=1, coordinator_keys=keys)
    )


@INIT.question("once, and again")
def init_again(asker: Asker) -> Any:
    at = coordinator(asker.side, asker.name("txn"))
    begin(asker.side, asker.name("warm"))
    asker.side.until(
        lambda: asker.ask(init_request(asker.name("txn")), to=at)["error_code"] == "NONE"
    )
    return [asker.ask(init_request(asker.name("txn")), to=at) for _ in range(3)]


@INIT.each("timeout of", {"0 ms": 0, "-1 ms": -1, "15 minutes": 900_000, "more": 900_001})
def init_timeout(asker: Asker, timeout_ms: int) -> Any:
    txn = new_producer(asker)
    request = InitProducerIdRequest(transactional_id=txn.name, transaction_timeout_ms=timeout_ms)
    return asker.ask(request, to=txn.at)


@INIT.question("by a client that knows its id and epoch", since=3)
def init_known(asker: Asker) -> Any:
    txn = new_producer(asker)
    who = (txn.producer_id, txn.epoch)
    first = asker.ask(init_request(txn.name, who), to=txn.at)
    again = asker.ask(init_request(txn.name, who), to=txn.at)
    late = asker.ask(init_request(txn.name, (txn.producer_id, txn.epoch + 5)), to=txn.at)
    strange = asker.ask(init_request(txn.name, (txn.producer_id + 999, txn.epoch)), to=txn.at)
    none = asker.ask(init_request(txn.name), to=txn.at)
    old = asker.ask(init_request(txn.name, who), to=txn.at)
    return [first, again, late, strange, none, old]


@INIT.question("while a transaction is open")
def init_open(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    add(asker.side, txn, (topic, 0))
    asker.side.ask(txn.produce(topic, txn.records(0)), 9)
    first = asker.ask(init_request(txn.name), to=txn.at)
    wait_until_settled(asker.side, txn)
    second = asker.ask(init_request(txn.name), to=txn.at)
    ended = asker.side.ask(txn.end(commit=True), 3, to=txn.at)
    return [first, second, ended, log(asker, topic)]


@INIT.question("from a broker that does not coordinate it")
def init_elsewhere(asker: Asker) -> Any:
    txn = new_producer(asker)
    return asker.ask(init_request(txn.name), to=txn.at % 3 + 1)


# -- AddPartitionsToTxn, AddOffsetsToTxn --------------------------------------------------------


@ADD.question("known, unknown and both", until=3)
def add_known(asker: Asker) -> Any:
    txn, topic = new_producer(asker), filled(asker.side)
    places = [((topic, 0), (topic, 1)), ((topic, 9),), (("never", 0), (topic, 0)), ((topic, 0),)]
    answers = [asker.ask(txn.add(*place), to=txn.at) for place in places]
    end(asker.side, txn, commit=False)
    return answers


@ADD.each("by", STRANGERS, until=3)
def add_by(asker: Asker, changes: dict[str, Any]) -> Any:
    txn = new_producer(asker, **changes)
    return asker.ask(txn.add((filled(asker.side), 0)), to=txn.at)


@ADD.question("nothing", until=3)
def add_nothing(asker: Asker) -> Any:
    txn = new_producer(asker)
    return asker.ask(txn.add(), to=txn.at)


EMPTY: dict[str, list[tuple[str, list[int]]]] = {
    "no partitions": [("{}", [])],
    "no partitions of a strange topic": [("never", [])],
    "no partitions, and some": [("never", []), ("{}", [0])],
    "a topic twice": [("{}", [0]), ("{}", [1]), ("{}", [])],
    "a partition twice": [("{}", [0, 0]), ("{}", [0])],
}


@ADD.each("empty or again,", EMPTY, until=3)
def add_empty(asker: Asker, places: list[tuple[str, list[int]]]) -> Any:
    """By its producer, by one that is fenced, and what the transaction is then."""
    txn, kind = new_producer(asker), AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    topics = [
        kind(name=topic.format(filled(asker.side)), partitions=some) for topic, some in places
    ]
    asked = [
        replace(other.add(), v3_and_below_topics=topics) for other in (txn.other(epoch=9), txn)
    ]
    return [*(asker.ask(request, to=txn.at) for request in asked), state(asker, txn)]


@ADD.question("verified, in one and not in another", since=4)
def verified(asker: Asker) -> Any:
    side, topic = asker.side, filled(asker.side)
    txn = new_producer(asker)
    add(side, txn, (topic, 0))
    claims = [
        txn.claim((topic, 0), (topic, 1), verify=True),
        txn.other(name=txn.name, epoch=7).claim((topic, 0), verify=True),
    ]
    answers = [
        asker.ask(AddPartitionsToTxnRequest(transactions=[claim]), to=txn.at) for claim in claims
    ]
    end(side, txn, commit=True)
    return [*answers, asker.ask(AddPartitionsToTxnRequest(transactions=[claims[0]]), to=txn.at)]


@ADD.question("added by a broker", since=4)
def added_by_a_broker(asker: Asker) -> Any:
    txn, topic = new_producer(asker), filled(asker.side)
    claim = txn.claim((topic, 0), ("never", 0), verify=False)
    good = txn.claim((topic, 1), verify=False)
    answers = [
        asker.ask(AddPartitionsToTxnRequest(transactions=[entry]), to=txn.at)
        for entry in (claim, good)
    ]
    end(asker.side, txn, commit=False)
    return answers


@OFFSETS.question("of a group")
def add_offsets(asker: Asker) -> Any:
    txn = new_producer(asker)
    asker.side.coordinator("any")
    answers = [asker.ask(txn.add_offsets(group), to=txn.at) for group in ("a", "a", "")]
    end(asker.side, txn, commit=False)
    return answers


@OFFSETS.each("by", STRANGERS)
def add_offsets_by(asker: Asker, changes: dict[str, Any]) -> Any:
    asker.side.coordinator("any")
    txn = new_producer(asker, **changes)
    return asker.ask(txn.add_offsets("a group"), to=txn.at)


# -- EndTxn -------------------------------------------------------------------------------------


@END.each("without a transaction", {"commit": True, "abort": False})
def end_nothing(asker: Asker, commit: bool) -> Any:
    txn = new_producer(asker)
    return asker.ask(txn.end(commit=commit), to=txn.at)


@END.each("once, again, and otherwise", {"commit": True, "abort": False})
def end_again(asker: Asker, commit: bool) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    add(asker.side, txn, (topic, 0))
    asker.side.ask(txn.produce(topic, txn.records(0, 2)), 9)
    answers = [asker.ask(txn.end(commit=commit), to=txn.at)]
    wait_until_settled(asker.side, txn)
    answers += [
        asker.ask(txn.end(commit=is_commit), to=txn.at) for is_commit in (commit, not commit)
    ]
    return [*answers, log(asker, topic)]


@END.each("by", STRANGERS)
def end_by(asker: Asker, changes: dict[str, Any]) -> Any:
    txn = new_producer(asker, **changes)
    return asker.ask(txn.end(commit=True), to=txn.at)


@END.each("from a client that hangs up", {"commit": True, "abort": False})
def end_and_hang_up(asker: Asker, commit: bool) -> Any:
    """What a request has begun is carried through."""
    side, topic = asker.side, asker.topic()
    txn = new_producer(asker)
    for sequence in range(5):
        add(side, txn, (topic, 0))
        side.ask(txn.produce(topic, txn.records(sequence)), 9)
        side.start(txn.end(commit=commit), asker.version, to=txn.at).hang_up()
        side.until(lambda: state(asker, txn).startswith("Complete"))
    again = asker.ask(init_request(txn.name), to=txn.at)
    return [again["error_code"], again["producer_epoch"], log(asker, topic)]


def state(asker: Asker, txn: Txn) -> str:
    request = DescribeTransactionsRequest(transactional_ids=[txn.name])
    answer = asker.side.get(request, 0, to=txn.at)
    return str(answer.transaction_states[0].transaction_state)


# -- Produce ------------------------------------------------------------------------------------


@WRITE.question("a partition that was not added", versions=(3, 10, 11))
def not_added(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    return asker.ask(txn.produce(topic, txn.records(0)))


@WRITE.question("a batch outside of a transaction that was not verified", versions=(3, 11))
def beside_a_verification(asker: Asker) -> Any:
    """What is being verified comes first, of whatever kind the next batches are."""
    txn, topic = new_producer(asker), asker.topic()
    batches = [txn.records(0), *(txn.records(n, transactional=False) for n in (0, 1))]
    old = txn.other(epoch=-1).records(9, transactional=False)
    return [asker.ask(txn.produce(topic, batch)) for batch in (*batches, old)] + [log(asker, topic)]


@WRITE.question("a batch without a producer", versions=(3, 11))
def without_a_producer(asker: Asker) -> Any:
    """There is nobody whose transaction it could be part of: it is taken as it is."""
    txn, topic = new_producer(asker), asker.topic()
    nobody = txn.other(producer_id=-1, epoch=-1)
    return [asker.ask(txn.produce(topic, nobody.records(n))) for n in (-1, 0, 7)] + [
        log(asker, topic)
    ]


@WRITE.question("a partition that was added", versions=(3, 11))
def was_added(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    add(asker.side, txn, (topic, 0))
    answers = [
        asker.ask(txn.produce(topic, txn.records(0, 2))),
        asker.ask(txn.produce(topic, txn.records(2))),
        asker.ask(txn.produce(topic, txn.records(2))),
        asker.ask(txn.produce(topic, txn.records(9))),
        asker.ask(txn.produce(topic, txn.records(3, transactional=False))),
    ]
    end(asker.side, txn, commit=True)
    answers += [asker.ask(txn.produce(topic, txn.records(3)))]
    return [*answers, log(asker, topic)]


@WRITE.question("not from the first sequence on", versions=(3, 11))
def not_the_first(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    add(asker.side, txn, (topic, 0))
    return [asker.ask(txn.produce(topic, txn.records(n))) for n in (5, 6, 5)]


@WRITE.each("by", {k: v for k, v in STRANGERS.items() if v.get("name") != ""}, versions=(3, 11))
def write_by(asker: Asker, changes: dict[str, Any]) -> Any:
    side, topic = asker.side, asker.topic()
    txn = begin(side, asker.name("txn"))
    add(side, txn, (topic, 0))
    other = txn.other(**changes)
    coordinator(side, other.name)
    return asker.ask(other.produce(topic, other.records(0)))


@WRITE.each(
    "of two producers at once",
    {
        "two ids": {"producer_id": 4711},
        "two epochs": {"epoch": 5},
        "only one in a transaction": {"transactional": False, "producer_id": 4711},
    },
    versions=(3, 11),
)
def two_producers(asker: Asker, changes: dict[str, Any]) -> Any:
    transactional = changes.get("transactional", True)
    topic = asker.topic([(1,), (1,)])
    txn = new_producer(asker)
    add(asker.side, txn, (topic, 0), (topic, 1))
    known = {key: value for key, value in changes.items() if key != "transactional"}
    stranger = txn.other(**known).records(0, transactional=transactional)
    request = txn.produce(topic, txn.records(0))
    request.topic_data[0].partition_data.append(
        ProduceRequest.PartitionProduceData(index=1, records=stranger)
    )
    answer = asker.ask(request)
    for response in answer["responses"]:
        response["partition_responses"].sort(key=lambda part: part["index"])
    return answer


@WRITE.question("without its transactional id", versions=(3, 11))
def unnamed(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    add(asker.side, txn, (topic, 0))
    return asker.ask(txn.produce(topic, txn.records(0), named=False))


@WRITE.question("by one that was shut out", versions=(3, 11))
def shut_out(asker: Asker) -> Any:
    old, topic = new_producer(asker), asker.topic()
    add(asker.side, old, (topic, 0))
    answers = [asker.ask(old.produce(topic, old.records(0)))]
    new = begin(asker.side, old.name)
    answers += [asker.ask(old.produce(topic, old.records(1)))]
    add(asker.side, new, (topic, 0))
    answers += [asker.ask(new.produce(topic, new.records(0)))]
    answers += [asker.ask(old.produce(topic, old.records(1)))]
    end(asker.side, new, commit=True)
    return [*answers, log(asker, topic)]


@WRITE.question("two in one partition, one aborted", versions=(9,))
def read_committed(asker: Asker) -> Any:
    """A read_committed fetch: its bounds and the aborted transactions."""
    side, topic = asker.side, asker.topic()
    first, two = (begin(side, asker.name(kind)) for kind in ("one", "two"))
    for txn in (first, two, first):
        add(side, txn, (topic, 0))
    answers = []
    for txn, sequence in ((first, 0), (two, 0), (first, 1)):
        asker.ask(txn.produce(topic, txn.records(sequence)))
        answers.append(bounds(asker, topic))
    end(side, first, commit=False)
    answers.append(bounds(asker, topic))
    end(side, two, commit=True)
    return [*answers, bounds(asker, topic), log(asker, topic)]


def bounds(asker: Asker, topic: str) -> Any:
    """High watermark, last stable offset and aborted transactions, producers by their turn."""
    answer = fetch(asker.side, 11, topic, [{"fetch_offset": 0}], isolation_level=1)
    (bounds,) = answer["responses"][0]["partitions"]
    aborted = [txn["first_offset"] for txn in bounds["aborted_transactions"] or ()]
    size = len(list(iter_batches(bounds["records"] or b"")))
    return bounds["high_watermark"], bounds["last_stable_offset"], aborted, size


def log(asker: Asker, topic: str) -> Any:
    """What lies in the log: batches and markers, producers and times aside."""
    answer = fetch(asker.side, 11, topic, [{"fetch_offset": 0}])
    data = answer["responses"][0]["partitions"][0]["records"] or b""
    return [
        {
            "offsets": (header.base_offset, header.last_offset),
            "epoch": header.producer_epoch,
            "sequence": header.base_sequence,
            "control": header.is_control,
            "transactional": header.is_transactional,
            "size": header.size,
            "records": [(record.key, record.value) for record in iter_records(part)],
        }
        for header, part in iter_batches(data)
    ]


# -- WriteTxnMarkers ----------------------------------------------------------------------------


def marker(txn: Txn, *places: tuple[str, int], epoch: int = 0, commit: bool = True) -> Any:
    kind = WriteTxnMarkersRequest
    return kind(
        markers=[
            kind.WritableTxnMarker(
                producer_id=txn.producer_id,
                producer_epoch=txn.epoch,
                transaction_result=commit,
                coordinator_epoch=epoch,
                topics=[
                    kind.WritableTxnMarkerTopic(name=name, partition_indexes=[index])
                    for name, index in places
                ],
            )
        ]
    )


@MARKERS.question("where nothing is open, and where nothing is")
def marker_of_nothing(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    answers = [
        asker.ask(marker(txn, (topic, 0))),
        asker.ask(marker(txn, (topic, 7))),
        asker.ask(marker(txn, ("never", 0))),
        asker.ask(marker(txn, (spread(asker.side), 1))),
        asker.ask(WriteTxnMarkersRequest(markers=[])),
    ]
    return [*answers, log(asker, topic)]


@MARKERS.question("of no producer, and of no epoch")
def marker_of_nobody(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    nobodys = (txn.other(producer_id=-1), txn.other(epoch=-1), txn.other(epoch=-2))
    asked = [(nobody, index) for nobody in nobodys for index in (0, 7)]
    return [asker.ask(marker(txn, (topic, index))) for txn, index in asked], log(asker, topic)


@MARKERS.question("of older epochs")
def marker_of_old_epochs(asker: Asker) -> Any:
    topic = asker.topic()
    txn = new_producer(asker).other(epoch=5)
    answers = [
        asker.ask(marker(txn, (topic, 0), epoch=3)),
        asker.ask(marker(txn, (topic, 0), epoch=2)),
        asker.ask(marker(txn.other(epoch=4), (topic, 0), epoch=3)),
        asker.ask(marker(txn.other(epoch=6), (topic, 0), epoch=3, commit=False)),
    ]
    return [*answers, log(asker, topic)]
