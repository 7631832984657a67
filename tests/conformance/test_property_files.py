"""Property files put to Apache Kafka 3.9.1 and to ours: the same properties, the same verdict, the
same values in effect, the same addresses advertised."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest

from tests.conformance.property_files import (
    PropertyFile,
    every_setting,
    listeners,
    related_settings,
    texts,
    variables,
)
from tests.conformance.property_probe import OK, Reading, definitions, read_all
from urteil.broker.config.broker_config import BrokerConfig, load_config
from urteil.broker.config.property_file import load_properties
from urteil.broker.config.values import ConfigError, known_keys

ENVIRONMENT = {"URTEIL_X": "7", "URTEIL_EMPTY": "", "URTEIL_NESTED": "${env:URTEIL_X}"}
OURS = "urteil."
SMALL_SEED, SMALL = 32, 120

REFUSED_HERE_ALONE = re.compile(
    "|".join(
        (
            r"this broker (serves ZooKeeper mode alone|has no|cannot)",
            r"This broker loads no Java classes",
            r"configuration zookeeper\.connect: not HOST:PORT",  # there when it connects
            r"port out of range",  # there when it binds
            r"one folder twice",  # there when it opens the logs
        )
    )
)
"""What Apache Kafka has and ours has not, and what Apache Kafka refuses a moment later."""


@dataclass
class Verdict:
    """What ours makes of a file."""

    said: str = OK
    raw: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


def read_here(path: Path) -> Verdict:
    verdict = Verdict()
    try:
        verdict.raw = _encodable(load_properties(path))
        verdict.values = _display(load_config(load_properties(path)))
    except ConfigError as error:
        verdict.said = str(error)
    return verdict


def _encodable(properties: Mapping[str, str]) -> dict[str, str]:
    """Java writes half a surrogate pair as a question mark."""
    pairs = [(key, value) for key, value in properties.items()]
    return {_plain(key): _plain(value) for key, value in pairs}


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _display(config: BrokerConfig) -> dict[str, str]:
    values = {
        name: key.display(raw)
        for name, key in known_keys().items()
        if not name.startswith(OURS)
        and (raw := config.properties.get(name, key.default)) is not None
    }
    advertised = [
        f"{listener.name}://{_host(listener.advertised_host)}:{listener.advertised_port}"
        for listener in config.listeners
        if listener.is_advertised
    ]
    computed = {
        "(advertised)": ",".join(advertised),
        "(inter.broker)": config.inter_broker_listener,
    }
    return {name: value for name, value in (values | computed).items() if value is not None}


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def differences(files: Sequence[PropertyFile], folder: Path) -> list[str]:
    paths = [folder / f"{number}.properties" for number in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(file.data)
    theirs = read_all(paths, ENVIRONMENT)
    differences = []
    for path, file, reading in zip(paths, files, theirs, strict=True):
        if (why := _difference(read_here(path), reading)) is not None:
            differences.append(f"{file.about}: {why}")
    return differences


def _difference(ours: Verdict, theirs: Reading) -> str | None:
    if ours.raw != theirs.raw:
        return f"read as {ours.raw}, there as {theirs.raw}"
    if theirs.accepted and REFUSED_HERE_ALONE.search(ours.said):
        return None
    if (ours.said == OK) != theirs.accepted:
        return f"{ours.said!r}, there {theirs.said!r}"
    values = {name: value for name, value in theirs.values.items() if name != "(listeners)"}
    other = {
        name: (ours.values.get(name), values.get(name))
        for name in ours.values.keys() | values.keys()
        if ours.values.get(name) != values.get(name)
    }
    return f"in effect here and there: {other}" if other else None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With what providers read, and their variables; ten thousand files are not logged."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "secrets" / "sub").mkdir(parents=True)
    (tmp_path / "secrets" / "one").write_text("eins\n")
    (tmp_path / "secrets.properties").write_text("key = geheim\n")
    (tmp_path / "latin1.properties").write_bytes(b"key=\xe4\n")
    (tmp_path / "escaped.properties").write_text("key=\\u00e9 \n")
    logging.disable(logging.CRITICAL)
    yield tmp_path
    logging.disable(logging.NOTSET)


def generated_files(folder: Path, seed: int, count: int) -> list[PropertyFile]:
    chance = random.Random(seed)
    return [
        *texts(chance, count),
        *listeners(chance, count),
        *related_settings(chance, count),
        *variables(chance, count, str(folder), folder.name),
    ]


def test_every_setting_has_apache_kafkas_type_default_and_visibility() -> None:
    keys = {name: key for name, key in known_keys().items() if not name.startswith(OURS)}
    ours = {
        name: (
            key.type,
            "null" if key.default is None else key.display(key.default),
            key.is_internal,
        )
        for name, key in keys.items()
    }
    theirs = {
        name: (kind, default, hidden) for name, (kind, default, _, hidden) in definitions().items()
    }
    assert ours == theirs


def test_sample_of_property_files_is_read_alike(folder: Path) -> None:
    some = islice(every_setting(), SMALL_SEED % 16, None, 16)
    assert differences([*some, *generated_files(folder, SMALL_SEED, SMALL)], folder) == []


@pytest.mark.thorough
def test_every_setting_is_read_alike(folder: Path) -> None:
    files = list(every_setting())
    assert len(files) > 7000
    assert differences(files, folder) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_generated_property_files_are_read_alike(folder: Path, seed: int) -> None:
    assert differences(generated_files(folder, seed, 1000), folder) == []
