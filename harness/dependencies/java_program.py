"""Java programs of the lab over libraries of Maven Central: `compose/NAME/pom.xml` and `src/`.

The pom has Eclipse's compiler beside the libraries, because a JRE has none.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    cache_dir,
    describe_folders,
    install_once,
    run,
)
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.maven import compose_pom, copy_dependencies

COMPILE_S = 300.0


def java_program(name: str, version: str, *, how: str) -> Path:
    """The folder with the jars of `compose/NAME/pom.xml`, for `-Dkafka.version=VERSION`, and the
    compiled classes of `compose/NAME/src`.

    Fetched and compiled on first use, and again for a changed source. MissingDependency, with
    Maven's or the compiler's last lines, if that fails.
    """

    def install(folder: Path) -> None:
        copy_dependencies(
            name, compose_pom(name), folder, how=how, options=[f"-Dkafka.version={version}"]
        )
        (compiler,) = folder.glob("ecj-*.jar")
        classpath = os.pathsep.join(str(jar) for jar in sorted(folder.glob("*.jar")))
        argv = [java(), "-jar", str(compiler), "-17", "-nowarn", "-cp", classpath]
        run(
            name,
            [*argv, "-d", str(folder), *map(str, _sources(name))],
            how=how,
            timeout_s=COMPILE_S,
        )

    return install_once(_target(name, version), install)


def describe_java_program(label: str, name: str, version: str, *, how: str) -> Dependency:
    """The line of a program in `urteil doctor`, under the name of its library."""
    return describe_folders(label, version, _target(name, version), how=how)


def _sources(name: str) -> list[Path]:
    return sorted(compose_pom(name).with_name("src").glob("*.java"))


def _target(name: str, version: str) -> Path:
    contents = (path.read_bytes() for path in (compose_pom(name), *_sources(name)))
    digest = hashlib.sha256(b"\0".join(contents))
    return cache_dir() / f"{name}-{version}-{digest.hexdigest()[:12]}"


def java_classpath(folder: Path) -> str:
    """The class path of a folder of `java_program`."""
    return f"{folder}{os.sep}*{os.pathsep}{folder}"
