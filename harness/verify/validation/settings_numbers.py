"""Settings of a run with impossible values: reported, and judged as absent."""

from __future__ import annotations

import re

from msgspec.structs import replace

from urteil.harness.clients.options import JUDGED, impossible_options
from urteil.harness.scenario import RunFacts, Scenario

_NUMERIC = re.compile(r".*[._](ms|bytes|minutes|hours|replicas)")
_NUMBER = re.compile(r"[+-]?\d{1,19}")


def replace_invalid_numbers(
    scenario: Scenario, facts: RunFacts
) -> tuple[Scenario, RunFacts, list[str]]:
    """Both without such settings, and a sentence for each, which names file and setting."""
    sentences: list[str] = []
    brokers = _valid_settings(scenario.cluster.config, "scenario.json, cluster", sentences)
    options = _valid_options(
        _valid_settings(scenario.workload.options, "scenario.json, workload", sentences), sentences
    )
    topics = [
        replace(
            topic, config=_valid_settings(topic.config, f"run.json, topic {topic.name}", sentences)
        )
        for topic in facts.topics
    ]
    if not sentences:
        return scenario, facts, sentences
    changed = replace(
        scenario,
        cluster=replace(scenario.cluster, config=brokers),
        workload=replace(scenario.workload, options=options),
    )
    return changed, replace(facts, topics=topics), sentences


def _valid_settings(config: dict[str, str], where: str, sentences: list[str]) -> dict[str, str]:
    wrong = {
        name: text
        for name, text in config.items()
        if _NUMERIC.fullmatch(name) and not _NUMBER.fullmatch(text)
    }
    sentences += [
        f"{where}: {name} is {text!r}, which is not a number; write one and judge again"
        for name, text in wrong.items()
    ]
    return {name: text for name, text in config.items() if name not in wrong}


def _valid_options(options: dict[str, str], sentences: list[str]) -> dict[str, str]:
    wrong = impossible_options(options, JUDGED)
    sentences += [
        f"scenario.json, workload: {name} is {options[name]!r}; write {values} and judge again"
        for name, values in wrong.items()
    ]
    return {name: text for name, text in options.items() if name not in wrong}
