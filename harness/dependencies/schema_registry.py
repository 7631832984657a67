"""Apicurio Registry from Maven Central's archive, and Confluent's Avro serializers from PyPI."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    cache_dir,
    describe_folders,
    install_once,
    run,
)
from urteil.harness.dependencies.maven import copy_artifact

NAME = "schema-registry"
VERSION, CLIENT = "2.6.13.Final", "2.16.1"
HOW = (
    "it comes from Maven Central (142 MB) and PyPI (20 MB) when the scenario schema-registry first "
    "runs: install Maven, for example with `apt-get install maven`"
)
INSTALL_S = 600


def registry_jar() -> Path:
    """The runner of Apicurio Registry, fetched on first use."""
    folder = install_once(_registry(), _fetch_registry)
    return folder / f"apicurio-registry-app-{VERSION}-runner.jar"


def serializer_packages() -> Path:
    """A folder for PYTHONPATH with confluent-kafka's serializers, installed on first use."""
    return install_once(_packages(), _install_packages)


def describe_schema_registry() -> Dependency:
    """One line of `urteil doctor`."""
    version = f"{VERSION}, serializers {CLIENT}"
    return describe_folders(NAME, version, _registry(), _packages(), how=HOW)


def _registry() -> Path:
    return cache_dir() / f"apicurio-registry-{VERSION}"


def _packages() -> Path:
    version = "".join(str(part) for part in sys.version_info[:2])
    return cache_dir() / f"avro-serializers-{CLIENT}-py{version}"


def _fetch_registry(folder: Path) -> None:
    artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
    copy_artifact(NAME, artifact, folder, how=HOW)
    archive = next(folder.glob("*.tar.gz"))
    shutil.unpack_archive(archive, folder)
    archive.unlink()


def _install_packages(folder: Path) -> None:
    has_pip = importlib.util.find_spec("pip") is not None
    pip = [sys.executable, "-m", "pip"] if has_pip else [shutil.which("pip") or "pip"]
    requirement = f"confluent-kafka[avro,schemaregistry]=={CLIENT}"
    argv = [*pip, "install", "-q", "--target", str(folder), requirement]
    run(NAME, argv, how=HOW, timeout_s=INSTALL_S)
