"""Chromium with its driver: the browser in which the tests open the lab's pages."""

from __future__ import annotations

import re
import shutil
import subprocess

from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    apt_install,
    can_apt,
)

HOW = (
    "install a browser with its WebDriver, for example with `apt-get install chromium "
    "chromium-driver` or `brew install chromium chromedriver`, and put both on PATH"
)


def chromium() -> tuple[str, str]:
    """Paths of the browser and of its driver; installs Debian's as root."""
    paths = _find()
    if paths is None and can_apt():
        for package in ("chromium", "chromium-driver"):
            apt_install("chromium", package, how=HOW)
        paths = _find()
    if paths is None:
        raise MissingDependency("chromium", HOW)
    return paths


def describe_chromium() -> Dependency:
    paths = _find()
    path = paths[0] if paths else ""
    version = _version(paths[1]) if paths else ""
    return Dependency(
        name="chromium", found=bool(paths), version=version, where=path, how=HOW, required=False
    )


def _find() -> tuple[str, str] | None:
    driver = shutil.which("chromedriver")
    for name in ("chromium", "chromium-browser", "google-chrome"):
        browser = shutil.which(name)
        if browser and driver:
            return browser, driver
    return None


def _version(driver: str) -> str:
    try:
        process = subprocess.run([driver, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d[\d.]*", process.stdout)
    return match[0] if match else ""
