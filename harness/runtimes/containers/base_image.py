"""The base of the images: Debian 12, from a registry or made here."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import docker
import requests

from urteil.harness.dependencies.installation import (
    MissingDependency,
    apt_install,
    cache_dir,
    can_apt,
    run,
)
from urteil.harness.dependencies.toxiproxy import MACHINES
from urteil.harness.runtimes.containers.engine import Engine

PUBLIC = "debian:bookworm-slim"
OWN = "urteil/base:bookworm"
SUITE = "bookworm"
REGISTRY_TIMEOUT_S = 10
PULL_TIMEOUT_S = 300
PART = ".base.part."
LEFT_OUT = (
    "dev/",
    "proc/",
    "sys/",
    "usr/share/doc/",
    "usr/share/man/",
    "usr/share/info/",
    "usr/share/locale/",
    "var/cache/apt/",
    "var/lib/apt/lists/",
    "var/log/",
)
SOURCES = """deb {mirror} bookworm main
deb {mirror} bookworm-updates main
"""
SETTINGS = {
    "etc/dpkg/dpkg.cfg.d/urteil": "path-exclude /usr/share/man/*\npath-exclude /usr/share/doc/*\n",
    "etc/apt/apt.conf.d/urteil": 'Acquire::Languages "none";\nAcquire::Retries "3";\n',
}
HOW = (
    f"let the engine reach a registry that has {PUBLIC}, or load that image (`docker load`), or "
    "name another base (`urteil images build --base IMAGE`), or run this as root on Debian, where "
    "the base is made with debootstrap"
)


def base_image(engine: Engine, report: Callable[[str], None]) -> str:
    """A Debian 12 image of the engine: an existing one, else pulled, else made by debootstrap.
    Raises MissingDependency if none of these works."""
    for reference in (PUBLIC, OWN):
        with suppress(docker.errors.ImageNotFound):
            engine.client.images.get(reference)
            return reference
    if _pull(engine, report):
        return PUBLIC
    _make_image(engine, report)
    return OWN


def _pull(engine: Engine, report: Callable[[str], None]) -> bool:
    """Whether a registry answered within 10 s and had the image."""
    api = engine.client.api
    usual, api.timeout = api.timeout, REGISTRY_TIMEOUT_S
    try:
        api.inspect_distribution(PUBLIC)
        report(f"pulling {PUBLIC}")
        api.timeout = PULL_TIMEOUT_S
        engine.client.images.pull(PUBLIC)
    except (docker.errors.DockerException, requests.RequestException):
        return False
    finally:
        api.timeout = usual
    return True


def _make_image(engine: Engine, report: Callable[[str], None]) -> None:
    machine = MACHINES.get(os.uname().machine)
    if not can_apt() or machine != engine.architecture:
        raise MissingDependency("base image", f"no registry answers: {HOW}")
    if shutil.which("debootstrap") is None:
        apt_install("debootstrap", "debootstrap", how=HOW)
    report(f"no registry answers: making {OWN} with debootstrap (about 30 s)")
    cache_dir().mkdir(parents=True, exist_ok=True)
    for remains in cache_dir().glob(f"{PART}*"):  # of a killed process; the caller has the lock
        _remove(remains)
    folder = Path(tempfile.mkdtemp(prefix=PART, dir=cache_dir()))
    try:
        _debootstrap(folder)
        _import(engine, folder)
    finally:
        _remove(folder)


def _debootstrap(folder: Path) -> None:
    """Debian's own bootstrap; URTEIL_DEBIAN_MIRROR names a mirror other than deb.debian.org."""
    mirror = os.environ.get("URTEIL_DEBIAN_MIRROR", "http://deb.debian.org/debian")
    argv = ["debootstrap", "--variant=minbase", SUITE, str(folder), mirror]
    run("base image", argv, how=f"debootstrap failed: {HOW}", timeout_s=900)
    for name, text in SETTINGS.items():
        (folder / name).write_text(text)
    (folder / "etc/apt/sources.list").write_text(SOURCES.format(mirror=mirror))


def _import(engine: Engine, folder: Path) -> None:
    with tempfile.NamedTemporaryFile(prefix=PART, dir=cache_dir()) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(folder, ".", filter=_filter_entry)
        file.flush()
        changes = ["LABEL org.urteil.image=base", 'CMD ["bash"]']
        repository, tag = OWN.split(":")
        try:
            engine.client.api.import_image_from_file(
                file.name, repository=repository, tag=tag, changes=changes
            )
            engine.client.images.get(OWN)
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise MissingDependency(
                "base image", f"the engine did not take {OWN}: {error}"
            ) from error


def _filter_entry(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Keep every folder, because packages expect theirs, but no file below LEFT_OUT."""
    left_out = info.name.removeprefix("./").startswith(LEFT_OUT)
    return info if info.isdir() or not left_out else None


def _remove(folder: Path) -> None:
    """Unmount the mounts of debootstrap, then remove: a removal must never descend into /proc."""
    if folder.is_file():
        return folder.unlink()
    for _ in range(3):
        mounted = [
            line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()
        ]
        inside = [point for point in mounted if Path(point).is_relative_to(folder)]
        if not inside:
            shutil.rmtree(folder, ignore_errors=True)
            return
        for point in sorted(inside, reverse=True):
            subprocess.run(["umount", point], capture_output=True, timeout=20)
