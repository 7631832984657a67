"""The plugin in another project, which has its own folders `harness` and `suites`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer

README = Path(__file__).parents[2] / "README.md"
OWN_HARNESS = 'WHOSE = "the other project\'s"\n'
OWN_SUITE = """
from harness.orders import WHOSE


def test_bare_names_are_the_projects_own():
    assert WHOSE == "the other project's"
"""
SHORT_NAMES = """
def test_fixtures_by_short_names(cluster, nemesis, history, urteil_lab):
    assert cluster.bootstrap_servers
    assert nemesis is urteil_lab.nemesis()
    assert history is urteil_lab.history()
"""
STANDING = """
import pytest


def test_standing_cluster_is_used(urteil_cluster, urteil_history):
    urteil_cluster.create_topic("t", partitions=3, replication_factor=3)
    with urteil_history.load("t", rate=300) as load:
        load.await_acked(400, deadline_s=30)
    result = urteil_history.judge()
    statuses = {one.name: one.status for one in result.guarantees}
    assert statuses["lost_write"] == "holds", result.reasons
    assert statuses["replica_divergence"] == "not judged"


def test_lock_is_broken_only_by_its_owner(request):
    with pytest.raises(Exception, match="a standing cluster belongs to its keeper"):
        request.getfixturevalue("urteil_nemesis")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Another project, with names as general as ours."""
    for folder, module, text in (
        ("harness", "orders.py", OWN_HARNESS),
        ("suites", "test_own.py", OWN_SUITE),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
        (tmp_path / folder / module).write_text(text)
    return tmp_path


def pytest_in(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=240)


def readme_example() -> str:
    (example,) = re.findall(r"```python\n# test_orders.py\n(.*?)```", README.read_text(), re.S)
    return str(example)


def test_readme_example_works_in_another_project(project: Path) -> None:
    (project / "test_orders.py").write_text(readme_example())
    done = pytest_in(project, "--urteil-engine", "duckdb")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    (run,) = (path for path in (project / "runs").iterdir() if not path.is_symlink())
    assert json.loads((run / "result.json").read_text())["verdict"] == "PASS"
    assert (run / "report.html").stat().st_size > 10_000


@pytest.mark.thorough
def test_short_names_are_opt_in(project: Path) -> None:
    (project / "test_short.py").write_text(SHORT_NAMES)
    without = pytest_in(project, "test_short.py")
    assert "fixture 'cluster' not found" in without.stdout
    (project / "pytest.ini").write_text("[pytest]\nurteil_short_names = true\n")
    done = pytest_in(project, "test_short.py", "--urteil-brokers", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
def test_readme_example_works_without_zookeeper(project: Path) -> None:
    (project / "test_orders.py").write_text(readme_example())
    target = ("--urteil-target", "kafka:4.4.0", "--urteil-controllers", "1")
    done = pytest_in(project, "--urteil-engine", "duckdb", *target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    (run,) = (path for path in (project / "runs").iterdir() if not path.is_symlink())
    assert json.loads((run / "result.json").read_text())["verdict"] == "PASS"


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["urteil", "kafka:4.4.0"])
def test_a_standing_cluster(project: Path, target: str) -> None:
    (project / "test_standing.py").write_text(STANDING)
    name = f"of-{project.name}"
    urteil("cluster", "up", "--name", name, "--target", target)
    try:
        options = ("--urteil-cluster", name, "--urteil-engine", "duckdb")
        done = pytest_in(project, "test_standing.py", *options)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        urteil("cluster", "down", "--name", name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--urteil-runtime", "docker"), "docker is missing: no engine at unix:///nowhere"),
        (("--urteil-target", "external:x.toml"), "does not start an external cluster"),
        pytest.param(
            ("--urteil-runtime", "ssh"),
            "add --urteil-hosts hosts.toml",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_impossible_options_are_reported_in_one_message(
    project: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str], message: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    (project / "test_short.py").write_text("def test_it(urteil_cluster):\n    pass\n")
    done = pytest_in(project, "test_short.py", *options)
    assert re.search(rf"PluginError: .*{' '.join(options)}.*{message}", done.stdout), done.stdout
    assert "During handling" not in done.stdout


@pytest.mark.thorough
def test_inventory_without_its_runtime_is_rejected(project: Path) -> None:
    done = pytest_in(project, "--urteil-hosts", "hosts.toml")
    assert "--urteil-hosts names the hosts of --urteil-runtime ssh: add it" in done.stderr


def urteil(*arguments: str) -> str:
    argv = [sys.executable, "-m", "urteil", *arguments]
    done = subprocess.run(argv, check=True, timeout=240, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def own_project(tmp_path: Path) -> Path:
    """The project of `tests/urteil/project` in a folder whose name is not ASCII."""
    folder = tmp_path / "größe-日本"
    shutil.copytree(Path(__file__).parent / "project", folder)
    return folder


def test_marker_settings_apply_and_a_failure_shows_logs(own_project: Path) -> None:
    done = pytest_in(own_project, "test_markers.py", "--strict-markers")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    section = done.stdout.partition("- urteil -")[2]
    (run,) = re.findall(r"^run +(.*)$", section, re.M)
    assert Path(run).parent == own_project / "runs"
    assert "again    pytest -k test_failure --urteil-seed 7" in section
    assert re.search(r"^--- b1\.log\n(.*\n)*.*kept-0: leads", section, re.M), section


@pytest.mark.thorough
def test_cluster_of_a_failed_test_is_kept_under_any_locale(
    own_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    done = pytest_in(own_project, "test_markers.py", "--urteil-keep", "-k", "failure")
    (name,) = re.findall(r"^cluster +urteil cluster status --name (.*)$", done.stdout, re.M)
    try:
        bootstrap = json.loads(urteil("cluster", "status", "--name", name, "--json"))["bootstrap"]
        consumer = KafkaConsumer(
            "kept",
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            consumer_timeout_ms=60_000,
        )
        assert next(consumer).value == b"a record of the failed test"
        consumer.close()
    finally:
        urteil("cluster", "down", "--name", name)


@pytest.mark.thorough
def test_tests_share_the_cluster_of_a_session_or_a_module(own_project: Path) -> None:
    done = pytest_in(own_project, "test_shared.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    script = "import sys, urteil.plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    heavy = {"kafka", "pyspark", "duckdb", "pyarrow", "bokeh", "kazoo", "docker", "testcontainers"}
    assert heavy.isdisjoint(done.stdout.split())
