"""The compose cluster equals the lab's plan."""

from __future__ import annotations

from pathlib import Path

from urteil.chaos.observations import Link
from urteil.harness.runtimes.containers.compose_files import compose_plan, write_all
from urteil.harness.targets.external import load_external

COMPOSE = Path(__file__).parents[4] / "compose"


def test_committed_compose_files_equal_the_output(tmp_path: Path) -> None:
    write_all(tmp_path)
    for file in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        name = file.relative_to(tmp_path)
        committed = COMPOSE / name
        assert committed.read_text() == file.read_text(), f"{name}: run `make compose-files`"


def test_external_file_names_every_node_and_link() -> None:
    plan, file = compose_plan(), load_external(COMPOSE / "external.toml")
    assert set(file.nodes) == {*plan.brokers, *plan.zookeepers}
    assert {Link(link.src, link.dst) for link in file.links} == set(plan.links())
    assert len(set(plan.published.values())) == len(plan.published)
    assert all(host == "127.0.0.1" for host, _ in plan.published.values())
