"""The recipes of docs/guide/clients.md: what a broker does to a client, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RECORDS = 20
WAITED_S = 1.5
"""Answers in the recipes are at least so late. The programs give up a request after two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A fault on the answers to one client, and the action of the client.

    `action` is one of the programs' (`tests/clients/programs/recipe_with_*`): `produce` sends
    RECORDS records, `consume` reads them, `commit` reads them and commits after each. In `options`
    `{topic}` is the topic of the test. `restarts` crashes the leader first, so that the leader
    epoch is not 0.
    """

    name: str
    action: str
    fault: str
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    restarts: bool = False
    throttles_ms: int = 0
    waits_s: float = 0.0

    @property
    def call(self) -> str:
        """The fault as a test writes it."""
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f'urteil_nemesis.fault("{self.fault}", "client->all"{options})'.replace("'", '"')


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="NOT_LEADER three times",
            action="produce",
            fault="answer_error",
            options={"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 3},
        ),
        Recipe(
            name="The answer to a Produce is lost",
            action="produce",
            fault="lose_answer",
            options={"api": "Produce", "occurrence": 5},
            waits_s=WAITED_S,
        ),
        Recipe(
            name="The answer to a Produce is slower than the request timeout",
            action="produce",
            fault="delay_answer",
            options={"api": "Produce", "occurrence": 5, "delay_ms": 5000},
            waits_s=WAITED_S,
        ),
        Recipe(
            name="A connection closes in the middle of an answer",
            action="produce",
            fault="truncate_answer",
            options={"api": "Produce", "occurrence": 5, "passed_bytes": 10},
        ),
        Recipe(
            name="An idempotent duplicate",
            action="produce",
            fault="answer_error",
            options={"api": "Produce", "error": "DUPLICATE_SEQUENCE_NUMBER", "occurrence": 5},
        ),
        Recipe(
            name="THROTTLE",
            action="produce",
            fault="rewrite_answer",
            options={
                "api": "Produce", "path": "throttle_time_ms", "value": "1500", "occurrence": 5,
            },
            throttles_ms=1500,
        ),
        Recipe(
            name="A coordinator that moves in the middle of a commit",
            action="commit",
            fault="answer_error",
            options={"api": "OffsetCommit", "error": "NOT_COORDINATOR", "occurrence": 5},
        ),
        Recipe(
            name="A leader epoch that goes back",
            action="consume",
            fault="rewrite_answer",
            options={
                "api": "Metadata", "path": "topics[].partitions[].leader_epoch", "value": "0",
                "fields": "topics[].topic={topic}",
            },
            restarts=True,
        ),
        Recipe(
            name="A fetch session evicted",
            action="consume",
            fault="answer_error",
            options={
                "api": "Fetch", "error": "FETCH_SESSION_ID_NOT_FOUND", "path": "error_code",
                "occurrence": 5,
            },
        ),
        Recipe(
            name="UNKNOWN_TOPIC_ID",
            action="consume",
            fault="answer_error",
            options={
                "api": "Fetch", "error": "UNKNOWN_TOPIC_ID",
                "path": "topics[].partitions[].error_code", "occurrence": 5,
            },
        ),
    )
}  # fmt: skip
