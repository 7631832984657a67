"""The Python packages of the broker image, downloaded here for the image's platform.

A build does not have this machine's certificates, proxies and indexes, so packages are not
downloaded in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from urteil.harness.dependencies.installation import MissingDependency, cache_dir, install_once, run

PYTHON = "3.11"
GLIBC = 36
"""Python and glibc 2.x of Debian 12, the base of the images."""

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
NOT_NEEDED = (
    "bin",
    "*/tests",
    "*/include",
    "*/src",
    "*/*.pyx",
    "*/*.pxd",
    "*/*.pxi",
    "pyarrow/includes",
    "pyarrow/libarrow_flight.so*",
    "pyarrow/libarrow_python_flight.so*",
    "pyarrow/libarrow_python_parquet_encryption.so*",
    "pyarrow/libarrow_s3.so*",
    "pyarrow/_*.so",
    "pyarrow/libarrow_python.so",
    "pyarrow/libarrow_python.so.*.*.*",
)
"""Files of pyarrow that `import pyarrow` does not need: the broker uses only its codecs."""

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
HOW = (
    "the packages of compose/broker/requirements.txt come from the Python package index: "
    "let pip or uv reach it"
)


def broker_dependencies(requirements: Path, architecture: str) -> Path:
    """A folder with the unpacked packages for Linux on `architecture` (amd64, arm64)."""
    machine = MACHINES.get(architecture)
    if machine is None:
        raise MissingDependency("image broker", f"no packages for an engine on {architecture}")
    pins = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    target = cache_dir() / f"broker-dependencies-{pins}-{machine}"
    return install_once(target, lambda folder: _fetch(requirements, machine, folder))


def _fetch(requirements: Path, machine: str, folder: Path) -> None:
    env = dict(os.environ)
    if CERTIFICATES.exists():
        env.setdefault("SSL_CERT_FILE", str(CERTIFICATES))
    uv = shutil.which("uv") or shutil.which("uv", path=sysconfig.get_path("scripts"))
    argv = _uv(uv, machine) if uv else _pip(machine)
    argv += ["--no-deps", "--require-hashes", "--target", str(folder), "-r", str(requirements)]
    run("image broker", argv, how=HOW, timeout_s=600, env=env)
    for pattern in NOT_NEEDED:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _uv(uv: str, machine: str) -> list[str]:
    platform = ["--python-platform", f"{machine}-manylinux_2_{GLIBC}", "--python-version", PYTHON]
    return [
        uv,
        "pip",
        "install",
        "-q",
        "--python",
        sys.executable,
        "--only-binary",
        ":all:",
        *platform,
    ]


def _pip(machine: str) -> list[str]:
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC, 16, -1)]
    options = [f"--platform={name}" for name in (*platforms, f"manylinux2014_{machine}")]
    selection = ["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp"]
    return [sys.executable, "-m", "pip", "install", "-q", *selection, *options]
