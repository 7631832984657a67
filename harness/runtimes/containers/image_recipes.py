"""The recipe of each image: its name, the hash of its inputs, and its build context."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import urteil
from urteil.harness.dependencies import kafka, toxiproxy
from urteil.harness.dependencies.kafka import kafka_classpath
from urteil.harness.dependencies.toxiproxy import toxiproxy_for_linux
from urteil.harness.dependencies.zookeeper import zookeeper_classpath
from urteil.harness.runtimes.containers.broker_packages import broker_dependencies
from urteil.harness.runtimes.containers.build_context import Context, Digest, files

NAMES = ("broker", "zookeeper", "toxiproxy", "kafka")
SHORT = 12
PACKAGE = Path(urteil.__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One image. `inputs` is the hash of its inputs, `checkout` the package with their files.

    `fill(context, architecture)` adds them to a context and may download dependencies
    (MissingDependency).
    """

    name: str
    repository: str
    version: str
    inputs: str
    checkout: str
    on_base: bool
    fill: Callable[[Context, str], None]

    @property
    def reference(self) -> str:
        """The tag of exactly these inputs."""
        prefix = "" if self.version == "latest" else f"{self.version}-"
        return f"{self.repository}:{prefix}{self.inputs[:SHORT]}"

    @property
    def newest_tag(self) -> str:
        """The tag of the newest build, for users: `urteil/broker:latest`."""
        return f"{self.repository}:{self.version}"


def recipe(name: str) -> Recipe:
    """The recipe of "broker", "zookeeper", "toxiproxy", "kafka" or "kafka:VERSION".

    Raises ValueError for another name, MissingDependency when the inputs cannot be determined.
    """
    kind, _, version = name.partition(":")
    if kind == "kafka" and (not version or re.fullmatch(r"[\w.-]+", version)):
        return _kafka(version or kafka.VERSION)
    if version or kind not in NAMES:
        raise ValueError(f"no image named {name!r}; known: {', '.join(NAMES)}, kafka:VERSION")
    return {"broker": _broker, "zookeeper": _zookeeper, "toxiproxy": _toxiproxy}[kind]()


def _broker() -> Recipe:
    folder = _folder("broker")
    digest = _start_digest(folder)
    for name, path in _broker_code():
        digest.add(name, path.read_bytes())

    def fill(context: Context, architecture: str) -> None:
        packages = broker_dependencies(folder / "requirements.txt", architecture)
        context.add_folder("dependencies", packages)
        for name, path in _broker_code():
            context.add(name, path)

    return _make_recipe("broker", digest, fill)


def _broker_code() -> list[tuple[str, Path]]:
    """The modules of the package that a broker, or one with a bug, imports; no tests."""
    suites = PACKAGE / "suites"
    paths = [PACKAGE / "__init__.py", suites / "__init__.py", suites / "source_hook.py"]
    for room in ("broker", "suites/mutants", "suites/drawn_bugs", "compose/broker"):
        paths += [PACKAGE / room / path for path in _modules(PACKAGE / room)]
    return [(f"urteil/{path.relative_to(PACKAGE)}", path) for path in paths]


def _modules(folder: Path) -> list[Path]:
    root = folder.resolve()
    modules = [path for path in files(root) if path.suffix == ".py"]
    return [path.relative_to(root) for path in modules if not path.name.startswith("test_")]


def _zookeeper() -> Recipe:
    jars = [Path(jar) for jar in zookeeper_classpath().split(":")]
    digest = _start_digest(_folder("zookeeper"))
    for jar in jars:
        digest.add(jar.name, b"")

    def fill(context: Context, architecture: str) -> None:
        for jar in jars:
            context.add(f"lib/{jar.name}", jar)

    return _make_recipe("zookeeper", digest, fill)


def _toxiproxy() -> Recipe:
    digest = _start_digest(_folder("toxiproxy"))
    digest.add("source", toxiproxy.source_digest().encode())

    def fill(context: Context, architecture: str) -> None:
        context.add("toxiproxy", toxiproxy_for_linux(architecture))

    return _make_recipe("toxiproxy", digest, fill, on_base=False)


def _kafka(version: str) -> Recipe:
    digest = _start_digest(_folder("kafka"))
    digest.add("version", version.encode())

    def fill(context: Context, architecture: str) -> None:
        for jar in sorted(Path(kafka_classpath(version)).parent.glob("*.jar")):
            context.add(f"libs/{jar.name}", jar)

    return _make_recipe("kafka", digest, fill, version=version)


def _folder(name: str) -> Path:
    return (PACKAGE / "compose" / name).resolve()


def _start_digest(folder: Path) -> Digest:
    digest = Digest()
    digest.add_folder("compose", folder)
    return digest


def _make_recipe(
    name: str,
    digest: Digest,
    fill: Callable[[Context, str], None],
    *,
    version: str = "latest",
    on_base: bool = True,
) -> Recipe:
    def fill_all(context: Context, architecture: str) -> None:
        context.add_folder(".", _folder(name))
        fill(context, architecture)

    full_name = name if version == "latest" else f"{name}:{version}"
    return Recipe(
        name=full_name,
        repository=f"urteil/{name}",
        version=version,
        inputs=digest.hexdigest(),
        checkout=str(PACKAGE.resolve()),
        on_base=on_base,
        fill=fill_all,
    )
