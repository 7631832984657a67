"""DeleteTopics: by name, by id, and wrongly."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.conformance.questions.registry import Asker, Subject
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import DeleteTopicsRequest

DELETE = Subject("DeleteTopics", ApiKey.DELETE_TOPICS)
STRANGE_ID = UUID("12345678-1234-1234-1234-123456789abc")
State = DeleteTopicsRequest.DeleteTopicState


def request(*topics: str | UUID) -> DeleteTopicsRequest:
    """Names and ids; versions below 6 carry the names alone."""
    states = [
        State(name=None, topic_id=topic) if isinstance(topic, UUID) else State(name=topic)
        for topic in topics
    ]
    names = [topic for topic in topics if isinstance(topic, str)]
    return DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=10_000)


@DELETE.question("a topic, and again", versions=range(7))
def by_name(asker: Asker) -> Any:
    name = asker.topic()
    return [asker.ask_controller(request(name, "never-there")), asker.ask_controller(request(name))]


@DELETE.question("a topic by id, and again", since=6)
def by_id(asker: Asker) -> Any:
    """Again once the id is forgotten, which Apache Kafka's controller does after its answer."""
    topic_id = asker.side.ids[asker.topic()]
    answers = [asker.ask_controller(request(topic_id))]

    def is_forgotten() -> bool:
        answers[1:] = [asker.ask_controller(request(topic_id))]
        return bool(answers[1]["responses"][0]["name"] is None)

    asker.side.until(is_forgotten)
    return answers


WRONG: dict[str, tuple[str | UUID, ...]] = {
    "unknown": ("never-there",),
    "bad names": ("..", "a b", ""),
    "twice": ("n1", "n1"),
    "nothing": (),
}


@DELETE.each("wrongly", WRONG)
def wrong_names(asker: Asker, topics: tuple[str | UUID, ...]) -> Any:
    return asker.ask_controller(request(*topics))


IDS: dict[str, tuple[str | UUID, ...]] = {
    "unknown": (STRANGE_ID,),
    "zero": (UUID(int=0),),
    "twice": (STRANGE_ID, STRANGE_ID),
}


@DELETE.each("wrong id", IDS, since=6)
def wrong_ids(asker: Asker, topics: tuple[str | UUID, ...]) -> Any:
    return asker.ask_controller(request(*topics))


@DELETE.question("name and id together", since=6)
def name_and_id(asker: Asker) -> Any:
    states = [State(name="n1", topic_id=STRANGE_ID)]
    return asker.ask_controller(DeleteTopicsRequest(topics=states, timeout_ms=1000))


@DELETE.question("asked of another broker than the controller")
def elsewhere(asker: Asker) -> Any:
    return asker.ask(request("c1"), to=asker.side.controller() % 3 + 1)
