"""Lists and descriptions of transactions and producers."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import Asker, Subject
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
def described(asker: Asker) -> Any:
    txn, topic = new_producer(asker), spread(asker.side)
    request = DescribeTransactionsRequest(transactional_ids=[txn.name])
    answers = [asker.ask(request, to=txn.at)]
    for commit in (True, False):
        add(asker.side, txn, (topic, 2), (topic, 0))
        answers.append(timeless(asker.ask(request, to=txn.at)))
        end(asker.side, txn, commit=commit)
        answers.append(timeless(asker.ask(request, to=txn.at)))
    answers.append(asker.ask(request, to=txn.at % 3 + 1))
    begin(asker.side, txn.name)
    answers.append(timeless(asker.ask(request, to=txn.at)))  # with the time of the last one
    nameless = DescribeTransactionsRequest(transactional_ids=[""])
    answers.append(asker.ask(nameless, to=coordinator(asker.side, "")))
    at = coordinator(asker.side, "never-seen")
    unknown = DescribeTransactionsRequest(transactional_ids=["never-seen"])
    return [*answers, asker.ask(unknown, to=at), asker.ask(DescribeTransactionsRequest(), to=at)]


def timeless(answer: Any) -> Any:
    for row in answer["transaction_states"]:
        began = row["transaction_start_time_ms"]
        row["transaction_start_time_ms"] = "a time" if began > 0 else began
        for topic in row["topics"]:
            topic["partitions"] = sorted(topic["partitions"])
    return answer


@LIST.question("by state, by producer, by duration")
def listed(asker: Asker) -> Any:
    txn, topic = new_producer(asker), spread(asker.side)
    add(asker.side, txn, (topic, 0))

    def ask(**filters: Any) -> Any:
        answer = asker.ask(ListTransactionsRequest(**filters), to=txn.at)
        mine = [row for row in answer["transaction_states"] if row["transactional_id"] == txn.name]
        return {**answer, "transaction_states": mine}

    mine = {"producer_id_filters": [txn.producer_id]}
    answers = [
        ask(),
        ask(**mine),
        ask(**mine, state_filters=["Ongoing"]),
        ask(**mine, state_filters=["Empty", "CompleteCommit"]),
        ask(**mine, state_filters=["MalformedMessage"]),
        ask(**mine, state_filters=["MalformedMessage", "Ongoing"]),
        ask(producer_id_filters=[999_999]),
    ]
    if asker.version >= 1:
        answers += [ask(**mine, duration_filter=0), ask(**mine, duration_filter=3_600_000)]
    end(asker.side, txn, commit=False)
    return answers


@PRODUCERS.question("with an open transaction, after it, and where nobody wrote")
def producers(asker: Asker) -> Any:
    txn, topic = new_producer(asker), asker.topic()
    kind = DescribeProducersRequest

    def ask(name: str, *indexes: int) -> Any:
        topics = [kind.TopicRequest(name=name, partition_indexes=list(indexes))]
        answer = asker.ask(kind(topics=topics))
        for partition in answer["topics"][0]["partitions"]:
            for known in partition["active_producers"]:
                known["last_timestamp"] = "a time" if known["last_timestamp"] > 0 else "none"
        return answer

    add(asker.side, txn, (topic, 0))
    answers = [ask(topic, 0)]
    asker.side.ask(txn.produce(topic, txn.records(0, 3)), 9)
    answers.append(ask(topic, 0, 5))
    end(asker.side, txn, commit=True)
    return [*answers, ask(topic, 0), ask("never", 0), ask(spread(asker.side), 0, 1)]
