"""The options of a session and the keywords of `@pytest.mark.urteil`."""

from __future__ import annotations

from typing import Any

import pytest

from urteil.lab_options import Options, PluginError, check_config, properties, with_markers

SESSION = Options(config={"log.retention.ms": 5, "num.partitions": 1}, seed=3)


def test_nearest_marker_wins_and_settings_are_merged() -> None:
    module = {"brokers": 5, "config": {"num.partitions": 2}, "topics": ["a", "b"]}
    test: dict[str, Any] = {"brokers": 1, "topics": {"b": {"partitions": 9}}}
    options = with_markers(SESSION, [module, test])
    assert (options.brokers, options.seed) == (1, 3)
    assert options.config == {"log.retention.ms": 5, "num.partitions": 2}
    assert [(topic_spec.name, topic_spec.partitions) for topic_spec in options.topic_specs(1)] == [
        ("a", 3),
        ("b", 9),
    ]


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (5, 3)])
def test_default_replication_factor_is_three_or_all_brokers(brokers: int, factor: int) -> None:
    (topic,) = with_markers(SESSION, [{"topics": ["a"]}]).topic_specs(brokers)
    assert topic.replication_factor == factor


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ({"broker": 1}, "unknown field `broker`; its keywords are target, runtime, brokers"),
        ({"brokers": "three"}, r"Expected `int \| null`, got `str`"),
        ({"brokers": 0}, r">= 1"),
        ({"runtime": "podman"}, "Invalid enum value 'podman'"),
        ({"topics": {"a": {"replicas": 1}}}, "unknown field `replicas`"),
        ({"topics": {"a": 3}}, "Expected `object`, got `int`"),
        ({"topics": "orders"}, r"topics='orders': write topics=\['orders'\]"),
        ({"out": "elsewhere"}, "`out` is an option of the command line, --urteil-out"),
    ],
)
def test_wrong_keyword_is_named(marker: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        with_markers(SESSION, [marker])


def test_settings_of_a_standing_cluster_are_rejected() -> None:
    stands = "the cluster mine"
    assert with_markers(SESSION, [{"topics": ["a"], "seed": 2}], stands).seed == 2
    with pytest.raises(PluginError, match=r"\(brokers=...\): the cluster mine stands already"):
        with_markers(SESSION, [{"brokers": 3}], stands)


def test_settings_are_written_in_property_file_form() -> None:
    assert properties({"a": True, "b": 1, "c": "x"}) == {"a": "true", "b": "1", "c": "x"}


def test_unknown_broker_setting_is_rejected_before_the_start() -> None:
    with pytest.raises(
        PluginError, match=r"--urteil-config\): no\.such: urteil .* no such setting"
    ):
        check_config(Options(config={"no.such": 1}), 3)
