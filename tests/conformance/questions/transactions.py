"""Transactions: who may begin, add, end and write, and what the logs and offsets are then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.conformance.fetching import fetch
from tests.conformance.questions.registry import Asked, Subject
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
def find(it: Asked) -> Any:
    coordinator(it.side, "a transactional id")
    keys = ["a transactional id", ""]
    return it.ask(
        FindCoordinatorRequest(key="a transactional id", key_type=1, coordinator_keys=keys)
    )


@INIT.question("once, and again")
def init_again(it: Asked) -> Any:
    at = coordinator(it.side, it.name("txn"))
    begin(it.side, it.name("warm"))
    it.side.until(lambda: it.ask(init_request(it.name("txn")), to=at)["error_code"] == "NONE")
    return [it.ask(init_request(it.name("txn")), to=at) for _ in range(3)]


@INIT.each("timeout of", {"0 ms": 0, "-1 ms": -1, "15 minutes": 900_000, "more": 900_001})
def init_timeout(it: Asked, timeout_ms: int) -> Any:
    txn = new_producer(it)
    request = InitProducerIdRequest(transactional_id=txn.name, transaction_timeout_ms=timeout_ms)
    return it.ask(request, to=txn.at)


@INIT.question("by a client that knows its id and epoch", since=3)
def init_known(it: Asked) -> Any:
    txn = new_producer(it)
    who = (txn.producer_id, txn.epoch)
    first = it.ask(init_request(txn.name, who), to=txn.at)
    again = it.ask(init_request(txn.name, who), to=txn.at)
    late = it.ask(init_request(txn.name, (txn.producer_id, txn.epoch + 5)), to=txn.at)
    strange = it.ask(init_request(txn.name, (txn.producer_id + 999, txn.epoch)), to=txn.at)
    none = it.ask(init_request(txn.name), to=txn.at)
    old = it.ask(init_request(txn.name, who), to=txn.at)
    return [first, again, late, strange, none, old]


@INIT.question("while a transaction is open")
def init_open(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    add(it.side, txn, (topic, 0))
    it.side.ask(txn.produce(topic, txn.records(0)), 9)
    first = it.ask(init_request(txn.name), to=txn.at)
    wait_until_settled(it.side, txn)
    second = it.ask(init_request(txn.name), to=txn.at)
    ended = it.side.ask(txn.end(commit=True), 3, to=txn.at)
    return [first, second, ended, log(it, topic)]


@INIT.question("from a broker that does not coordinate it")
def init_elsewhere(it: Asked) -> Any:
    txn = new_producer(it)
    return it.ask(init_request(txn.name), to=txn.at % 3 + 1)


# -- AddPartitionsToTxn, AddOffsetsToTxn --------------------------------------------------------


@ADD.question("known, unknown and both", until=3)
def add_known(it: Asked) -> Any:
    txn, topic = new_producer(it), filled(it.side)
    places = [((topic, 0), (topic, 1)), ((topic, 9),), (("never", 0), (topic, 0)), ((topic, 0),)]
    answers = [it.ask(txn.add(*place), to=txn.at) for place in places]
    end(it.side, txn, commit=False)
    return answers


@ADD.each("by", STRANGERS, until=3)
def add_by(it: Asked, changes: dict[str, Any]) -> Any:
    txn = new_producer(it, **changes)
    return it.ask(txn.add((filled(it.side), 0)), to=txn.at)


@ADD.question("nothing", until=3)
def add_nothing(it: Asked) -> Any:
    txn = new_producer(it)
    return it.ask(txn.add(), to=txn.at)


EMPTY: dict[str, list[tuple[str, list[int]]]] = {
    "no partitions": [("{}", [])],
    "no partitions of a strange topic": [("never", [])],
    "no partitions, and some": [("never", []), ("{}", [0])],
    "a topic twice": [("{}", [0]), ("{}", [1]), ("{}", [])],
    "a partition twice": [("{}", [0, 0]), ("{}", [0])],
}


@ADD.each("empty or again,", EMPTY, until=3)
def add_empty(it: Asked, places: list[tuple[str, list[int]]]) -> Any:
    """By its producer, by one that is fenced, and what the transaction is then."""
    txn, kind = new_producer(it), AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    topics = [kind(name=one.format(filled(it.side)), partitions=some) for one, some in places]
    asked = [replace(one.add(), v3_and_below_topics=topics) for one in (txn.other(epoch=9), txn)]
    return [*(it.ask(one, to=txn.at) for one in asked), state(it, txn)]


@ADD.question("verified, in one and not in another", since=4)
def verified(it: Asked) -> Any:
    side, topic = it.side, filled(it.side)
    txn = new_producer(it)
    add(side, txn, (topic, 0))
    claims = [
        txn.claim((topic, 0), (topic, 1), verify=True),
        txn.other(name=txn.name, epoch=7).claim((topic, 0), verify=True),
    ]
    answers = [
        it.ask(AddPartitionsToTxnRequest(transactions=[claim]), to=txn.at) for claim in claims
    ]
    end(side, txn, commit=True)
    return [*answers, it.ask(AddPartitionsToTxnRequest(transactions=[claims[0]]), to=txn.at)]


@ADD.question("added by a broker", since=4)
def added_by_a_broker(it: Asked) -> Any:
    txn, topic = new_producer(it), filled(it.side)
    claim = txn.claim((topic, 0), ("never", 0), verify=False)
    good = txn.claim((topic, 1), verify=False)
    answers = [
        it.ask(AddPartitionsToTxnRequest(transactions=[one]), to=txn.at) for one in (claim, good)
    ]
    end(it.side, txn, commit=False)
    return answers


@OFFSETS.question("of a group")
def add_offsets(it: Asked) -> Any:
    txn = new_producer(it)
    it.side.coordinator("any")
    answers = [it.ask(txn.add_offsets(group), to=txn.at) for group in ("a", "a", "")]
    end(it.side, txn, commit=False)
    return answers


@OFFSETS.each("by", STRANGERS)
def add_offsets_by(it: Asked, changes: dict[str, Any]) -> Any:
    it.side.coordinator("any")
    txn = new_producer(it, **changes)
    return it.ask(txn.add_offsets("a group"), to=txn.at)


# -- EndTxn -------------------------------------------------------------------------------------


@END.each("without a transaction", {"commit": True, "abort": False})
def end_nothing(it: Asked, commit: bool) -> Any:
    txn = new_producer(it)
    return it.ask(txn.end(commit=commit), to=txn.at)


@END.each("once, again, and otherwise", {"commit": True, "abort": False})
def end_again(it: Asked, commit: bool) -> Any:
    txn, topic = new_producer(it), it.topic()
    add(it.side, txn, (topic, 0))
    it.side.ask(txn.produce(topic, txn.records(0, 2)), 9)
    answers = [it.ask(txn.end(commit=commit), to=txn.at)]
    wait_until_settled(it.side, txn)
    answers += [it.ask(txn.end(commit=one), to=txn.at) for one in (commit, not commit)]
    return [*answers, log(it, topic)]


@END.each("by", STRANGERS)
def end_by(it: Asked, changes: dict[str, Any]) -> Any:
    txn = new_producer(it, **changes)
    return it.ask(txn.end(commit=True), to=txn.at)


@END.each("from a client that hangs up", {"commit": True, "abort": False})
def end_and_hang_up(it: Asked, commit: bool) -> Any:
    """What a request has begun is carried through."""
    side, topic = it.side, it.topic()
    txn = new_producer(it)
    for sequence in range(5):
        add(side, txn, (topic, 0))
        side.ask(txn.produce(topic, txn.records(sequence)), 9)
        side.start(txn.end(commit=commit), it.version, to=txn.at).hang_up()
        side.until(lambda: state(it, txn).startswith("Complete"))
    again = it.ask(init_request(txn.name), to=txn.at)
    return [again["error_code"], again["producer_epoch"], log(it, topic)]


def state(it: Asked, txn: Txn) -> str:
    request = DescribeTransactionsRequest(transactional_ids=[txn.name])
    answer = it.side.get(request, 0, to=txn.at)
    return str(answer.transaction_states[0].transaction_state)


# -- Produce ------------------------------------------------------------------------------------


@WRITE.question("a partition that was not added", versions=(3, 10, 11))
def not_added(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    return it.ask(txn.produce(topic, txn.records(0)))


@WRITE.question("a batch outside of a transaction that was not verified", versions=(3, 11))
def beside_a_verification(it: Asked) -> Any:
    """What is being verified comes first, of whatever kind the next batches are."""
    txn, topic = new_producer(it), it.topic()
    batches = [txn.records(0), *(txn.records(n, transactional=False) for n in (0, 1))]
    old = txn.other(epoch=-1).records(9, transactional=False)
    return [it.ask(txn.produce(topic, batch)) for batch in (*batches, old)] + [log(it, topic)]


@WRITE.question("a batch without a producer", versions=(3, 11))
def without_a_producer(it: Asked) -> Any:
    """There is nobody whose transaction it could be part of: it is taken as it is."""
    txn, topic = new_producer(it), it.topic()
    nobody = txn.other(producer_id=-1, epoch=-1)
    return [it.ask(txn.produce(topic, nobody.records(n))) for n in (-1, 0, 7)] + [log(it, topic)]


@WRITE.question("a partition that was added", versions=(3, 11))
def was_added(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    add(it.side, txn, (topic, 0))
    answers = [
        it.ask(txn.produce(topic, txn.records(0, 2))),
        it.ask(txn.produce(topic, txn.records(2))),
        it.ask(txn.produce(topic, txn.records(2))),
        it.ask(txn.produce(topic, txn.records(9))),
        it.ask(txn.produce(topic, txn.records(3, transactional=False))),
    ]
    end(it.side, txn, commit=True)
    answers += [it.ask(txn.produce(topic, txn.records(3)))]
    return [*answers, log(it, topic)]


@WRITE.question("not from the first sequence on", versions=(3, 11))
def not_the_first(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    add(it.side, txn, (topic, 0))
    return [it.ask(txn.produce(topic, txn.records(n))) for n in (5, 6, 5)]


@WRITE.each("by", {k: v for k, v in STRANGERS.items() if v.get("name") != ""}, versions=(3, 11))
def write_by(it: Asked, changes: dict[str, Any]) -> Any:
    side, topic = it.side, it.topic()
    txn = begin(side, it.name("txn"))
    add(side, txn, (topic, 0))
    other = txn.other(**changes)
    coordinator(side, other.name)
    return it.ask(other.produce(topic, other.records(0)))


@WRITE.each(
    "of two producers at once",
    {
        "two ids": {"producer_id": 4711},
        "two epochs": {"epoch": 5},
        "only one in a transaction": {"transactional": False, "producer_id": 4711},
    },
    versions=(3, 11),
)
def two_producers(it: Asked, changes: dict[str, Any]) -> Any:
    transactional = changes.get("transactional", True)
    topic = it.topic([(1,), (1,)])
    txn = new_producer(it)
    add(it.side, txn, (topic, 0), (topic, 1))
    known = {key: value for key, value in changes.items() if key != "transactional"}
    stranger = txn.other(**known).records(0, transactional=transactional)
    request = txn.produce(topic, txn.records(0))
    request.topic_data[0].partition_data.append(
        ProduceRequest.PartitionProduceData(index=1, records=stranger)
    )
    answer = it.ask(request)
    for one in answer["responses"]:
        one["partition_responses"].sort(key=lambda part: part["index"])
    return answer


@WRITE.question("without its transactional id", versions=(3, 11))
def unnamed(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    add(it.side, txn, (topic, 0))
    return it.ask(txn.produce(topic, txn.records(0), named=False))


@WRITE.question("by one that was shut out", versions=(3, 11))
def shut_out(it: Asked) -> Any:
    old, topic = new_producer(it), it.topic()
    add(it.side, old, (topic, 0))
    answers = [it.ask(old.produce(topic, old.records(0)))]
    new = begin(it.side, old.name)
    answers += [it.ask(old.produce(topic, old.records(1)))]
    add(it.side, new, (topic, 0))
    answers += [it.ask(new.produce(topic, new.records(0)))]
    answers += [it.ask(old.produce(topic, old.records(1)))]
    end(it.side, new, commit=True)
    return [*answers, log(it, topic)]


@WRITE.question("two in one partition, one aborted", versions=(9,))
def read_committed(it: Asked) -> Any:
    """A read_committed fetch: its bounds and the aborted transactions."""
    side, topic = it.side, it.topic()
    one, two = (begin(side, it.name(kind)) for kind in ("one", "two"))
    for txn in (one, two, one):
        add(side, txn, (topic, 0))
    seen = []
    for txn, sequence in ((one, 0), (two, 0), (one, 1)):
        it.ask(txn.produce(topic, txn.records(sequence)))
        seen.append(bounds(it, topic))
    end(side, one, commit=False)
    seen.append(bounds(it, topic))
    end(side, two, commit=True)
    return [*seen, bounds(it, topic), log(it, topic)]


def bounds(it: Asked, topic: str) -> Any:
    """High watermark, last stable offset and aborted transactions, producers by their turn."""
    answer = fetch(it.side, 11, topic, [{"fetch_offset": 0}], isolation_level=1)
    (bounds,) = answer["responses"][0]["partitions"]
    aborted = [txn["first_offset"] for txn in bounds["aborted_transactions"] or ()]
    size = len(list(iter_batches(bounds["records"] or b"")))
    return bounds["high_watermark"], bounds["last_stable_offset"], aborted, size


def log(it: Asked, topic: str) -> Any:
    """What lies in the log: batches and markers, producers and times aside."""
    answer = fetch(it.side, 11, topic, [{"fetch_offset": 0}])
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
def marker_of_nothing(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    answers = [
        it.ask(marker(txn, (topic, 0))),
        it.ask(marker(txn, (topic, 7))),
        it.ask(marker(txn, ("never", 0))),
        it.ask(marker(txn, (spread(it.side), 1))),
        it.ask(WriteTxnMarkersRequest(markers=[])),
    ]
    return [*answers, log(it, topic)]


@MARKERS.question("of no producer, and of no epoch")
def marker_of_nobody(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    nobodys = (txn.other(producer_id=-1), txn.other(epoch=-1), txn.other(epoch=-2))
    asked = [(one, index) for one in nobodys for index in (0, 7)]
    return [it.ask(marker(one, (topic, index))) for one, index in asked], log(it, topic)


@MARKERS.question("of older epochs")
def marker_of_old_epochs(it: Asked) -> Any:
    topic = it.topic()
    txn = new_producer(it).other(epoch=5)
    answers = [
        it.ask(marker(txn, (topic, 0), epoch=3)),
        it.ask(marker(txn, (topic, 0), epoch=2)),
        it.ask(marker(txn.other(epoch=4), (topic, 0), epoch=3)),
        it.ask(marker(txn.other(epoch=6), (topic, 0), epoch=3, commit=False)),
    ]
    return [*answers, log(it, topic)]
