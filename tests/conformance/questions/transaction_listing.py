"""Lists and descriptions of transactions and producers."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import Asked, Subject
from tests.conformance.questions.stage import spread
from tests.conformance.transactions import add, begin, coordinator, end, new_producer
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

DESCRIBE = Subject("DescribeTransactions", ApiKey.DESCRIBE_TRANSACTIONS)
LIST = Subject("ListTransactions", ApiKey.LIST_TRANSACTIONS)
PRODUCERS = Subject("DescribeProducers", ApiKey.DESCRIBE_PRODUCERS)


@DESCRIBE.question("empty, open, committed, aborted, unknown")
def described(it: Asked) -> Any:
    txn, topic = new_producer(it), spread(it.side)
    request = DescribeTransactionsRequest(transactional_ids=[txn.name])
    seen = [it.ask(request, to=txn.at)]
    for commit in (True, False):
        add(it.side, txn, (topic, 2), (topic, 0))
        seen.append(timeless(it.ask(request, to=txn.at)))
        end(it.side, txn, commit=commit)
        seen.append(timeless(it.ask(request, to=txn.at)))
    seen.append(it.ask(request, to=txn.at % 3 + 1))
    begin(it.side, txn.name)
    seen.append(timeless(it.ask(request, to=txn.at)))  # with the time of the last one
    nameless = DescribeTransactionsRequest(transactional_ids=[""])
    seen.append(it.ask(nameless, to=coordinator(it.side, "")))
    at = coordinator(it.side, "never-seen")
    unknown = DescribeTransactionsRequest(transactional_ids=["never-seen"])
    return [*seen, it.ask(unknown, to=at), it.ask(DescribeTransactionsRequest(), to=at)]


def timeless(answer: Any) -> Any:
    for one in answer["transaction_states"]:
        began = one["transaction_start_time_ms"]
        one["transaction_start_time_ms"] = "a time" if began > 0 else began
        for topic in one["topics"]:
            topic["partitions"] = sorted(topic["partitions"])
    return answer


@LIST.question("by state, by producer, by duration")
def listed(it: Asked) -> Any:
    txn, topic = new_producer(it), spread(it.side)
    add(it.side, txn, (topic, 0))

    def ask(**filters: Any) -> Any:
        answer = it.ask(ListTransactionsRequest(**filters), to=txn.at)
        mine = [one for one in answer["transaction_states"] if one["transactional_id"] == txn.name]
        return {**answer, "transaction_states": mine}

    mine = {"producer_id_filters": [txn.producer_id]}
    seen = [
        ask(),
        ask(**mine),
        ask(**mine, state_filters=["Ongoing"]),
        ask(**mine, state_filters=["Empty", "CompleteCommit"]),
        ask(**mine, state_filters=["MalformedMessage"]),
        ask(**mine, state_filters=["MalformedMessage", "Ongoing"]),
        ask(producer_id_filters=[999_999]),
    ]
    if it.version >= 1:
        seen += [ask(**mine, duration_filter=0), ask(**mine, duration_filter=3_600_000)]
    end(it.side, txn, commit=False)
    return seen


@PRODUCERS.question("with an open transaction, after it, and where nobody wrote")
def producers(it: Asked) -> Any:
    txn, topic = new_producer(it), it.topic()
    kind = DescribeProducersRequest

    def ask(name: str, *indexes: int) -> Any:
        topics = [kind.TopicRequest(name=name, partition_indexes=list(indexes))]
        answer = it.ask(kind(topics=topics))
        for one in answer["topics"][0]["partitions"]:
            for known in one["active_producers"]:
                known["last_timestamp"] = "a time" if known["last_timestamp"] > 0 else "none"
        return answer

    add(it.side, txn, (topic, 0))
    seen = [ask(topic, 0)]
    it.side.ask(txn.produce(topic, txn.records(0, 3)), 9)
    seen.append(ask(topic, 0, 5))
    end(it.side, txn, commit=True)
    return [*seen, ask(topic, 0), ask("never", 0), ask(spread(it.side), 0, 1)]
