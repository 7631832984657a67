"""Options of a test's cluster: those of the pytest session, changed by the test's markers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from urteil.harness.scenario import STATIC, Quorum, TopicSpec
from urteil.harness.standing import StandingRequest
from urteil.harness.standing.settings import settings_problem

SESSION_WORDS = {
    "standing": "--urteil-cluster",
    "hosts": "--urteil-hosts",
    "out": "--urteil-out",
    "engine": "--urteil-engine",
    "keep": "--urteil-keep",
}
"""Options that only the command line sets."""
CLUSTER_WORDS = ("target", "runtime", "brokers", "zookeepers", "controllers", "quorum", "config")
"""Options that a standing cluster already has."""


class PluginError(Exception):
    """A fixture cannot do what a test requests; the message names the remedy."""


class TopicOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic that exists when the test begins."""

    partitions: int = 3
    replication_factor: int | None = None
    config: dict[str, str | int | float | bool] = {}


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster of one test; `brokers` is 3, or as many as the target's mix has.

    `standing` names a standing cluster, `hosts` is the inventory of the runtime ssh, `out` is the
    folder of runs, `keep` leaves the cluster of a failed test standing.
    """

    standing: str | None = None
    target: str = "urteil"
    runtime: Literal["process", "docker", "ssh"] = "process"
    hosts: str = ""
    brokers: Annotated[int, msgspec.Meta(ge=1, le=9)] | None = None
    zookeepers: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    controllers: Literal[0, 1, 3, 5] = 0
    quorum: Quorum = STATIC
    config: dict[str, str | int | float | bool] = {}
    topics: dict[str, TopicOptions] = {}
    seed: int = 1
    out: str = "runs"
    engine: str = "auto"
    keep: bool = False

    def topic_specs(self, brokers: int) -> list[TopicSpec]:
        """The topics to create; the replication factor is 3, or as many as there are brokers."""
        return [
            TopicSpec(
                name=name,
                partitions=topic.partitions,
                replication_factor=topic.replication_factor or min(3, brokers),
                config=properties(topic.config),
            )
            for name, topic in self.topics.items()
        ]


def properties(config: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """Settings as in a property file."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }


def with_markers(
    options: Options, markers: Iterable[Mapping[str, Any]], running_cluster: str = ""
) -> Options:
    """`options` with the keywords of `@pytest.mark.urteil`, the nearest marker last.

    `running_cluster` names one that keeps its settings. `config` and `topics` are merged,
    other keywords replace. Raises PluginError for an unknown keyword or a wrong value.
    """
    merged = msgspec.structs.asdict(options)
    requested: set[str] = set()
    for marker in markers:
        keywords = _check_keywords(marker)
        requested |= keywords.keys()
        for name in ("config", "topics"):
            keywords[name] = merged[name] | keywords.get(name, {})
        merged |= keywords
    try:
        test_options = msgspec.convert(msgspec.to_builtins(merged), Options)
    except msgspec.ValidationError as error:
        raise PluginError(
            f"@pytest.mark.urteil: {error}; its keywords are {', '.join(_keywords())}"
        ) from None
    if running_cluster and (fixed := sorted(requested & set(CLUSTER_WORDS))):
        raise PluginError(
            f"@pytest.mark.urteil({fixed[0]}=...): {running_cluster} stands already and "
            "keeps its settings; "
            "use urteil_cluster without --urteil-cluster for a cluster of the test's own"
        )
    return test_options


def check_config(options: Options, brokers: int) -> None:
    """Raise PluginError for an unknown broker setting or a wrong value."""
    request = StandingRequest(
        brokers=brokers, target=options.target, settings=properties(options.config)
    )
    if problem := settings_problem(request):
        raise PluginError(
            f"settings of the brokers (config, --urteil-config): {problem.removeprefix('--set ')}"
        )


def _check_keywords(marker: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a marker, topics by name. Raises PluginError for a session option."""
    keywords = dict(marker)
    for name, option in SESSION_WORDS.items():
        if name in keywords:
            raise PluginError(
                f"@pytest.mark.urteil: `{name}` is an option of the command line, {option}"
            )
    topics = keywords.get("topics", {})
    if isinstance(topics, str):
        raise PluginError(f"@pytest.mark.urteil: topics={topics!r}: write topics=[{topics!r}]")
    if not isinstance(topics, Mapping):
        keywords["topics"] = {name: {} for name in topics}
    return keywords


def _keywords() -> list[str]:
    return [name for name in Options.__struct_fields__ if name not in SESSION_WORDS]
