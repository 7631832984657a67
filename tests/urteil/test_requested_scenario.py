"""Options of `urteil run` that no scenario can have together: rejected before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.cli.main import exit_code
from urteil.suites.drawn_bugs.bug import make_bug
from urteil.suites.source_hook import BROKER

WRONG_USAGE = 254


@pytest.fixture
def drawn_bug(tmp_path: Path) -> str:
    source = (BROKER / "__main__.py").read_text()
    bug = make_bug(
        room="start",
        slip="remark",
        file=f"{BROKER.name}/__main__.py",
        function="main",
        source=source,
        changed=f"{source}# another line\n",
    )
    bug.save(tmp_path / "bug.json")
    return str(tmp_path / "bug.json")


@pytest.mark.parametrize("runtime", ["docker", "ssh"])
def test_drawn_bug_needs_brokers_that_read_its_file(
    runtime: str, drawn_bug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "demo", "--runtime", runtime, "--mutant", drawn_bug]
    if runtime == "ssh":
        inventory = Path(drawn_bug).with_name("hosts.toml")
        inventory.write_text('[hosts.alpha]\naddress = "198.18.0.1"\n')
        words += ["--hosts", str(inventory)]
    assert exit_code(words) == WRONG_USAGE
    error = capsys.readouterr().err
    assert f"nodes of --runtime {runtime} do not have: play it with --runtime process" in error
