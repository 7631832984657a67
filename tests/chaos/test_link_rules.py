"""Rules of links are checked before any proxy has them."""

from __future__ import annotations

import json
import re

import pytest

from tests.chaos.paper import PaperCluster
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import ANSWER, REQUEST, LinkRule, parse_versions
from urteil.chaos.message_fields import CATALOGUE
from urteil.chaos.protocol_names import APIS


def test_names_of_apis_are_those_of_the_proxy() -> None:
    known = {
        name: entry["key"] for name, entry in json.loads(CATALOGUE.read_bytes())["apis"].items()
    }
    assert set(APIS.values()) == set(known.values())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"api": "Prodce"}, "there is no API Prodce; did you mean Produce"),
        ({"api": "Produce", "error": "NOT_LEADR"}, "NOT_LEADER_OR_FOLLOWER"),
        ({"api": "EndTxn", "versions": "9"}, "EndTxn has no version 9; there are 0 to 5"),
        ({"api": "EndTxn", "versions": "5-2"}, "the first is above the last"),
        ({"api": "EndTxn", "versions": "new"}, "write 9, 3-7, 3- or -7"),
        ({"api": "EndTxn", "fields": "transactional=x"}, "did you mean transactional_id?"),
        ({"api": "Produce", "fields": "topics.name=x"}, "write topics[], it is a list"),
        ({"api": "Produce", "fields": "topics[].partitions[]=x"}, "is a message: add one of"),
        ({"api": "Produce", "fields": "acks=all"}, "acks is a number (int16), not 'all'"),
        ({"api": "Produce", "fields": "acks=70000"}, "from -32768 to 32767"),
        ({"fields": "acks=1"}, "name the api"),
        ({"api": "Produce", "path": "topics[].partitions[].error"}, "error_code"),
        ({"api": "Produce", "path": "topics[].topic"}, "is not an error code of Produce"),
        ({"api": "Produce", "probability": 0}, "probability"),
    ],
)
def test_mistake_in_a_rule_is_named_with_what_there_is(
    options: dict[str, str | float | bool], reason: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        FAULTS["answer_error"](FaultArguments(target="client->leader", options=options))


def test_api_may_be_its_key_and_versions_a_number() -> None:
    """Files of schedules have numbers."""
    given: dict[str, str | float | bool] = {"api": 22.0, "versions": 99.0}
    with pytest.raises(ValueError, match="InitProducerId has no version 99"):
        FAULTS["lose_answer"](FaultArguments(target="client->leader", options=given))
    with pytest.raises(ValueError, match="there is no API 999"):
        LinkRule(direction=ANSWER, act="drop", api="999")
    rule = LinkRule(direction=ANSWER, act="drop", api="22")
    assert rule.body("r", ["p"])["api"] == "22"


def test_rewritten_field_needs_a_value_of_its_type() -> None:
    options = {"api": "Fetch", "path": "throttle_time_ms", "value": "soon"}
    with pytest.raises(ValueError, match=r"throttle_time_ms is a number \(int32\)"):
        FAULTS["rewrite_answer"](FaultArguments(target="client->leader", options=options))


def test_values_are_sent_in_the_types_of_their_fields() -> None:
    rule = LinkRule(
        direction=ANSWER,
        act="drop",
        api="produce",
        request_fields={"topic_data[].name": "7", "acks": "-1", "transactional_id": "t*"},
    )
    body = rule.body("r", ["client-b1-9092"])
    assert body["api"] == "0"
    expected = {"topic_data[].name": "7", "acks": -1, "transactional_id": "t*"}
    assert body["request_fields"] == expected


@pytest.mark.parametrize(
    ("text", "versions"),
    [("", (0, -1)), ("9", (9, 9)), ("3-7", (3, 7)), ("3-", (3, -1)), ("-7", (0, 7))],
)
def test_versions_are_a_range(text: str, versions: tuple[int, int]) -> None:
    assert parse_versions(text) == versions


def test_probability_follows_the_seed() -> None:
    def seed(of_run: str) -> int:
        arguments = FaultArguments(
            target="client->leader", seed=of_run, options={"probability": 0.5}
        )
        fault = FAULTS["lose_request"](arguments)
        assert isinstance(fault, RuleFault)
        rule = fault.rule()
        assert rule.probability == 0.5
        return int(rule.seed)

    assert seed("1/0") == seed("1/0") != seed("2/0")


def test_lost_hits_and_unreadable_frames_are_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = PaperCluster()
    fault = FAULTS["lose_answer"](FaultArguments(target="client->leader", options={"api": "Fetch"}))
    begun = fault.begin(cluster)
    monkeypatch.setattr(cluster.net, "lost_hits", lambda *, owner: "the Toxiproxy was restarted")
    fault.heal(cluster)
    final = fault.final_proof(begun)
    assert not final.acted
    assert "was restarted; known: 1 frames: drop Fetch" in final.text


def test_frame_that_cannot_be_read_is_no_proof() -> None:
    cluster = PaperCluster()
    fault = FAULTS["lose_answer"](FaultArguments(target="client->leader", options={"api": "Fetch"}))
    fault.begin(cluster)
    (owner,) = cluster.net.hit
    _, links = cluster.net.hit[owner]
    cluster.net.hit[owner] = (LinkRule(direction=REQUEST, act="unreadable", api="Fetch"), links)
    fault.heal(cluster)
    final = fault.final_proof(fault.begin(PaperCluster()))
    assert not final.acted
    assert "unreadable Fetch 1 request" in final.text
