"""Made-up runs for these tests: healthy evidence of one partition, and copies to damage."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from urteil.harness.scenario import RunFacts, Scenario, TopicFact
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import MADE_UP_SETTINGS, MADE_UP_TOPICS, Copy, mirror_of
from urteil.harness.verify.derived.impact import grace_ns
from urteil.harness.verify.derived.undisturbed_intervals import group_bound_ns
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import GuaranteeResult, Result
from urteil.harness.verify.synthetic import END_NS, RUN, Shape
from urteil.harness.verify.synthetic_group import add_group

ONE = Shape(records=400, partitions=1)
_CLUSTER = synthetic.scenario(ONE).cluster
UNCLEAN = msgspec.structs.replace(
    _CLUSTER, config=_CLUSTER.config | {"unclean.leader.election.enable": "true"}
)
"""The cluster with unclean elections."""
Tables = dict[str, list[dict[str, Any]]]


def healthy(shape: Shape = ONE) -> Tables:
    """Healthy tables with every column, also the run's."""
    return {name: [dict(row) for row in rows] for name, rows in _healthy(shape).items()}


@functools.cache
def _healthy(shape: Shape) -> Tables:
    return {
        name: [{"run": RUN} | row for row in rows]
        for name, rows in add_group(synthetic.healthy(shape), shape).items()
    }


def copy_of(tables: Tables) -> Copy:
    """A copy whose victims are the sends of partition 0, but for the first."""
    copy = Copy(tables, tail=True, partitions=2, last_ns=END_NS)
    sends = [row for row in tables["sends"] if row["partition"] == 0]
    copy.victims = sorted(sends, key=lambda row: row["offset"])[8:]
    copy.grace_ns = grace_ns(synthetic.scenario(ONE))
    copy.still_ns = group_bound_ns(synthetic.scenario(ONE))
    return copy


def damaged_scenario() -> Scenario:
    """The scenario of a copy, with the settings on which damages depend."""
    scenario = synthetic.scenario(ONE)
    config = scenario.cluster.config | MADE_UP_SETTINGS
    cluster = msgspec.structs.replace(scenario.cluster, config=config)
    options = scenario.workload.options | {"promise": "exactly-once"}
    workload = msgspec.structs.replace(scenario.workload, options=options)
    return msgspec.structs.replace(scenario, cluster=cluster, workload=workload)


def two_partitions(facts: RunFacts) -> RunFacts:
    """The same facts, with a topic whose second partition is unused, and with the topics of the
    damages."""
    topics = [msgspec.structs.replace(topic, partitions=2) for topic in facts.topics]
    return msgspec.structs.replace(facts, topics=[*topics, mirror_of(topics[0]), *MADE_UP_TOPICS])


def judged(
    run_dir: Path,
    tables: Tables,
    *,
    shape: Shape = ONE,
    scenario: Scenario | None = None,
    facts: RunFacts | None = None,
    engine: str = "duckdb",
    session: Any = None,
    canary: bool = False,
) -> Result:
    """The result of a run with these tables."""
    played = scenario or synthetic.scenario(shape)
    synthetic.write_run(run_dir, tables, played, facts or synthetic.facts(shape))
    return judge_run(run_dir, engine=engine, master=None, session=session, canary=canary)


def named(result: Result, name: str) -> GuaranteeResult:
    """One guarantee of a result."""
    return next(guarantee for guarantee in result.guarantees if guarantee.name == name)


def alone(name: str, run_dir: Path, tables: Tables, **more: Any) -> GuaranteeResult:
    """The result of one guarantee, judged alone; `more` as for `judged`."""
    with asked_for(name):
        return named(judged(run_dir, tables, **more), name)


def asked_for(*names: str) -> AbstractContextManager[object]:
    """Judge these guarantees alone. Missing evidence is reported for any of them, and sooner."""
    return patch.dict(GUARANTEES, {name: GUARANTEES[name] for name in names}, clear=True)


def topic(**config: str) -> list[TopicFact]:
    """The made-up topic with settings of its own."""
    (fact,) = synthetic.facts(ONE).topics
    names = {name.replace("_", "."): value for name, value in config.items()}
    return [msgspec.structs.replace(fact, config=names)]
