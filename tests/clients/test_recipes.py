"""The recipes of docs/guide/clients.md, each with three clients on one standing cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import tools
from tests.clients.recipes import RECIPES, RECORDS, Recipe

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "clients.md"
TIMEOUT_S = 120
CLIENTS = {
    "kafka-python": lambda: tools.recipe("kafka_python"),
    "confluent-kafka": lambda: tools.recipe("confluent_kafka"),
    "java": lambda: tools.in_java("3.9.1", "Recipe"),
}
CHEAP = ("NOT_LEADER three times", "kafka-python")
"""The pair of the default command."""

pytestmark = pytest.mark.urteil(brokers=3)


def act(client: str, action: str, bootstrap: str, topic: str) -> dict[str, Any]:
    argv = [*CLIENTS[client](), action, bootstrap, topic, str(RECORDS)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    print(done.stderr)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def pairs() -> Iterator[Any]:
    for recipe in RECIPES:
        for client in CLIENTS:
            marks = [] if (recipe, client) == CHEAP else [pytest.mark.thorough]
            yield pytest.param(RECIPES[recipe], client, marks=marks, id=f"{recipe}, {client}")


@pytest.mark.parametrize(("recipe", "client"), list(pairs()))
def test_client_masters_the_recipe(
    urteil_module_cluster: Any, urteil_nemesis: Any, recipe: Recipe, client: str
) -> None:
    bootstrap = urteil_module_cluster.bootstrap
    topic = f"recipe-{list(RECIPES).index(recipe.name)}-{client}"
    urteil_module_cluster.create_topic(topic, partitions=1, replication_factor=3)
    if recipe.restarts:
        with urteil_nemesis.fault("crash", "leader", topic=topic):
            pass
    if recipe.action != "produce":
        act("kafka-python", "produce", bootstrap, topic)
    options = {
        name: value.format(topic=topic) if isinstance(value, str) else value
        for name, value in recipe.options.items()
    }
    with urteil_nemesis.fault(recipe.fault, "client->all", client_id="recipe", **options):
        outcome = act(client, recipe.action, bootstrap, topic)
    stored = act("kafka-python", "consume", bootstrap, topic)["values"]
    assert stored == list(range(RECORDS))
    check(recipe, outcome)


def check(recipe: Recipe, outcome: dict[str, Any]) -> None:
    print(outcome)
    if recipe.action == "produce":
        assert outcome["acked"] == RECORDS
        assert outcome["throttled_ms"] == recipe.throttles_ms
        assert outcome["longest_s"] >= recipe.waits_s
        return
    assert outcome["values"] == list(range(RECORDS))
    if recipe.action == "commit":
        assert outcome["committed"] == RECORDS


def test_page_has_every_recipe() -> None:
    page = PAGE.read_text()
    missing = [recipe.name for recipe in RECIPES.values() if f"## {recipe.name}\n" not in page]
    missing += [recipe.call for recipe in RECIPES.values() if recipe.call not in page]
    assert missing == []
