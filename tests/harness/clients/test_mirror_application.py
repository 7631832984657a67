"""The declaration of MirrorMaker: its property file, its readiness and its expected settings."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from urteil.harness.clients.applications import application_of
from urteil.harness.clients.applications.declaration import Context
from urteil.harness.clients.applications.mirror import (
    BUGS,
    MirrorOptions,
    describe_failure,
    describe_missing,
    expected_rows,
    properties,
)
from urteil.harness.scenarios import SCENARIOS

FAILED = (
    "2026-11-29 08:35:16,046 ERROR WorkerTask ExactlyOnceWorkerSourceTask"
    "{id=MirrorSourceConnector-0} Task threw an uncaught and unrecoverable exception. Task is "
    "being killed and will not recover until manually restarted\n"
    "org.apache.kafka.connect.errors.ConnectException: Failed to flush offsets\n"
)
"""What Kafka Connect 3.9.1 logs when a transaction of a task has timed out."""


def context(tmp_path: Path, scenario: str = "mirror-passive", **options: str) -> Context:
    chosen = SCENARIOS[scenario]
    load = chosen.workload
    load = msgspec.structs.replace(load, options=load.options | options)
    return Context(
        scenario=msgspec.structs.replace(chosen, workload=load),
        run="r1",
        run_dir=tmp_path,
        bootstrap=("127.0.0.1:1",),
        topics=(),
        second_bootstrap=("127.0.0.1:2",),
        wan_bootstrap=("127.0.0.1:3",),
        journals=lambda _kind: [],
    )


def test_mirror_reaches_the_first_cluster_over_the_wan(tmp_path: Path) -> None:
    settings = properties(context(tmp_path), "a1")
    assert settings["east.bootstrap.servers"] == "127.0.0.1:3"
    assert settings["west.bootstrap.servers"] == "127.0.0.1:2"
    assert settings["west->east.enabled"] == "false"
    assert "west.exactly.once.source.support" not in settings


def test_active_clusters_are_mirrored_both_ways_and_exactly_once(tmp_path: Path) -> None:
    settings = properties(context(tmp_path, "mirror-active"), "a1")
    assert settings["west->east.enabled"] == "true"
    assert settings["west.exactly.once.source.support"] == "enabled"


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bug_is_a_setting(bug: str, tmp_path: Path) -> None:
    settings = properties(context(tmp_path, variant=bug), "a1")
    assert BUGS[bug].items() <= settings.items()
    assert not BUGS[bug].items() <= properties(context(tmp_path), "a1").items()


def test_unknown_bug_is_rejected(tmp_path: Path) -> None:
    load = context(tmp_path, variant="none of these").load
    with pytest.raises(ValueError, match="has no variant 'none of these'"):
        application_of(load)


def test_mirror_is_ready_with_a_task_for_each_direction(
    tmp_path: Path,
) -> None:
    both = context(tmp_path, "mirror-active")
    assert describe_missing(both, "a1") == "no task replicates east->west"
    both.log("a1").parent.mkdir()
    both.log("a1").write_text("task-0 replicating 3 topic-partitions east->west: [urteil-0]\n")
    assert describe_missing(both, "a1") == "no task replicates west->east"
    assert "west does not answer" in describe_missing(context(tmp_path), "a1")


def test_failed_task_is_a_failure_of_its_session(tmp_path: Path) -> None:
    run = context(tmp_path, "mirror-active")
    run.log("a1").parent.mkdir()
    run.log("a1").write_text("task-0 replicating 3 topic-partitions east->west: [urteil-0]\n")
    assert describe_failure(run, "a1") == ""
    run.log("a1").write_text(FAILED)
    assert describe_failure(run, "a1") == (
        "ExactlyOnceWorkerSourceTask{id=MirrorSourceConnector-0} has failed"
    )


def test_release_of_mirrormaker_is_an_option(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mirror"):
        MirrorOptions.of(context(tmp_path, mirror="newest").load)


def test_grant_of_everything_is_expected_as_a_grant_to_read(tmp_path: Path) -> None:
    query = expected_rows(context(tmp_path).scenario)
    assert "'ACL of User:alice' AS key, 'READ' AS value" in query
