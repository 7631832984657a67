"""`urteil hosts` and `--runtime ssh` on the command line: wrong usage, before any connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.cli.main import exit_code

WRONG_USAGE = 254


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    path = tmp_path / "hosts.toml"
    path.write_text('[hosts.alpha]\naddress = "198.18.0.1"\n')
    return str(path)


def test_runtime_and_inventory_go_together(
    inventory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["run", "demo"], ["cluster", "up"]):
        for words in (["--runtime", "ssh"], ["--hosts", inventory]):
            assert exit_code([*command, *words]) == WRONG_USAGE
            assert "--runtime ssh and --hosts hosts.toml go together" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("disk-full", "the fault disk_full acts only with --runtime process or docker"),
        ("rights", "a listener for users is there only with --runtime process"),
        ("mirror-failover", "a second cluster is there only with --runtime process"),
    ],
)
def test_scenario_that_needs_processes_is_rejected(
    scenario: str, reason: str, inventory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", scenario, "--runtime", "ssh", "--hosts", inventory]
    assert exit_code(words) == WRONG_USAGE
    assert reason in capsys.readouterr().err


def test_inventory_without_a_host_for_a_node_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('[hosts.alpha]\naddress = "198.18.0.1"\nruns = ["broker"]\n')
    over_hosts = ["--runtime", "ssh", "--hosts", str(path)]
    for words, role in (
        (["run", "demo"], "zookeeper"),
        (["run", "quorum-leader"], "controller"),
        (["cluster", "up", "--target", "kafka:4.4.0", "--controllers", "1"], "controller"),
    ):
        assert exit_code([*words, *over_hosts]) == WRONG_USAGE
        assert f"no host runs a {role}: add" in capsys.readouterr().err


@pytest.mark.parametrize("option", [("--port", "9092"), ("--tls",), ("--first-broker-id", "0")])
def test_standing_cluster_of_hosts_has_the_labs_own_listeners_only(
    option: tuple[str, ...], inventory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "up", "--name", "never-up", "--runtime", "ssh", "--hosts", inventory]
    assert exit_code([*words, *option]) == WRONG_USAGE
    assert f"{option[0]} needs nodes on this machine" in capsys.readouterr().err


def test_bad_inventory_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('[hosts.alpha]\naddress = "alpha"\n')
    for words in (
        ["hosts", "check", str(path)],
        ["run", "demo", "--runtime", "ssh", "--hosts", str(path)],
        ["cluster", "up", "--runtime", "ssh", "--hosts", str(path)],
        ["night", "--hosts", str(path), "--into", str(tmp_path / "night")],
    ):
        assert exit_code(words) == WRONG_USAGE
        assert "hosts.alpha.address: 'alpha' is no IPv4 address" in capsys.readouterr().err


def test_night_rejects_groups_that_the_inventory_does_not_have(
    inventory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["night", "--into", str(tmp_path / "night"), "--hosts-per-run", "2"]
    assert exit_code(words) == WRONG_USAGE
    assert "--hosts-per-run is a part of --hosts hosts.toml: add that" in capsys.readouterr().err
    assert exit_code([*words, "--hosts", inventory]) == WRONG_USAGE
    assert "1 host cannot form a group of 2" in capsys.readouterr().err
