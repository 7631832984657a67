"""Installs Debian's docker.io without leaving its daemon running."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from urteil.harness.dependencies.installation import apt_install

PACKAGE = "docker.io"
UNITS = ("docker.service", "docker.socket", "containerd.service")
POLICY = Path("/usr/sbin/policy-rc.d")
MARK = "# urteil: services stay stopped while docker.io is installed"


def install_docker(*, how: str) -> None:
    """Install docker.io. Its services are neither started now nor enabled for the next boot.

    The caller has checked that it is missing and that this is Debian and root.
    """
    with _no_services():
        apt_install("docker", PACKAGE, how=how)


@contextmanager
def _no_services(policy: Path = POLICY) -> Iterator[None]:
    """By policy-rc.d, unless the machine has one of its own, and by masks where systemd runs."""
    ours = _write_policy(policy)
    systemd = Path("/run/systemd/system").exists() and shutil.which("systemctl") is not None
    if systemd:
        _systemctl("mask", "--runtime", *UNITS)
    try:
        yield
    finally:
        if systemd:
            _systemctl("unmask", "--runtime", *UNITS)
            _systemctl("disable", *UNITS)
        if ours:
            policy.unlink(missing_ok=True)


def _write_policy(policy: Path) -> bool:
    """Whether the policy in force is ours: a new one, or one of a killed installation."""
    try:
        descriptor = os.open(policy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o755)
    except FileExistsError:
        return MARK in policy.read_text(errors="replace")
    with os.fdopen(descriptor, "w") as file:
        file.write(f"#!/bin/sh\n{MARK}\nexit 101\n")
    return True


def _systemctl(*arguments: str) -> None:
    subprocess.run(["systemctl", *arguments], capture_output=True, timeout=60)
