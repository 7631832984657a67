"""Each lab over our cluster and over Apache Kafka: what the tools print is equal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from urteil.suites.courses.clusters import standing_desks
from urteil.suites.courses.lab import Lab, LabCluster
from urteil.suites.courses.labs import ALL
from urteil.suites.courses.player import LearnerPlace, play_lab


@pytest.fixture(scope="module")
def desks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[LearnerPlace]]:
    cluster: LabCluster = request.param
    with standing_desks(cluster, tmp_path_factory.mktemp(cluster.name)) as both:
        yield both


@pytest.mark.parametrize(
    ("desks", "lab"),
    [pytest.param(lab.cluster, lab, id=lab.name) for lab in ALL],
    indirect=["desks"],
)
def test_lab_prints_the_same_over_both_clusters(desks: list[LearnerPlace], lab: Lab) -> None:
    result = play_lab(lab, desks)
    assert result.findings == [], "\n".join(map(str, result.findings))
