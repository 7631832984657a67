"""Images are built when they must be, and a failed build leaves nothing."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.runtimes.containers import image_recipes
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.containers.images import ensure_images, image_states

ROOT = Path(__file__).parents[4]
ALL = ("broker", "zookeeper", "toxiproxy")


@pytest.fixture(scope="module")
def built(engine: Engine) -> dict[str, str]:
    return ensure_images(engine, ALL, print)


@pytest.fixture
def checkout(
    engine: Engine, built: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Another checkout, to be edited. Its images are removed, and `latest` is ours again."""
    package = tmp_path / "urteil"
    for room in ("broker", "suites", "compose"):
        shutil.copytree(image_recipes.PACKAGE / room, package / room)
    shutil.copy(image_recipes.PACKAGE / "__init__.py", package)
    with monkeypatch.context() as patched:
        patched.setattr(image_recipes, "PACKAGE", package)
        yield package
    ensure_images(engine, ALL)
    for image in engine.client.images.list(filters={"label": f"org.urteil.checkout={package}"}):
        for tag in image.tags:
            engine.client.images.remove(tag)


def everything(engine: Engine) -> set[str]:
    return {image.id for image in engine.client.images.list(all=True)}


def edit(package: Path) -> None:
    with (package / "broker" / "__main__.py").open("a") as file:
        file.write(f"# {time.time()}\n")


def test_images_carry_their_inputs_and_do_not_run_as_root(
    engine: Engine, built: dict[str, str]
) -> None:
    for name, reference in built.items():
        image = engine.client.images.get(reference)
        assert f"urteil/{name}:latest" in image.tags
        assert image.labels["org.urteil.inputs"] == image_recipes.recipe(name).inputs
        assert image.labels["org.urteil.image"] == name
        assert image.attrs["Config"]["User"] in ("urteil", "1000:1000")


def test_a_second_call_builds_nothing(engine: Engine, built: dict[str, str]) -> None:
    before, said = everything(engine), list[str]()
    assert ensure_images(engine, ALL, said.append) == built
    assert said == []
    assert everything(engine) == before
    states = {state.name: state.state for state in image_states(engine)}
    assert [states[name] for name in ALL] == ["current"] * 3


def test_a_second_command_builds_nothing(engine: Engine, built: dict[str, str]) -> None:
    before = everything(engine)
    argv = [sys.executable, "-m", "urteil", "images", "build"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    assert built["broker"] in done.stdout
    assert everything(engine) == before


def test_the_same_files_elsewhere_are_the_same_image(
    engine: Engine, built: dict[str, str], checkout: Path
) -> None:
    said: list[str] = []
    assert ensure_images(engine, ALL, said.append) == built
    assert said == []


@pytest.mark.thorough
def test_edit_of_the_broker_rebuilds_one_image_layer(
    engine: Engine, built: dict[str, str], checkout: Path
) -> None:
    edit(checkout)
    states = {state.name: state.state for state in image_states(engine)}
    assert (states["broker"], states["zookeeper"]) == ("out of date", "current")
    said: list[str] = []
    changed = ensure_images(engine, ALL, said.append)
    assert said == ["building urteil/broker:latest"]
    assert changed["zookeeper"] == built["zookeeper"]
    old, new = (layers(engine, image_ids["broker"]) for image_ids in (built, changed))
    assert old[:-1] == new[:-1]
    assert changed["broker"] in engine.client.images.get("urteil/broker:latest").tags
    assert engine.client.images.get(built["broker"]), "another checkout's image stays"


def layers(engine: Engine, reference: str) -> list[str]:
    ids: list[str] = engine.client.images.get(reference).attrs["RootFS"]["Layers"]
    return ids


@pytest.mark.thorough
def test_unused_replaced_images_of_a_checkout_are_removed(engine: Engine, checkout: Path) -> None:
    references = [changed_toxiproxy(engine, checkout)]
    container = engine.client.containers.create(references[0])
    try:
        references += [changed_toxiproxy(engine, checkout) for _ in range(2)]
    finally:  # the image of a container that is there, running or not, is in use
        container.remove()
    tags = {tag for image in engine.client.images.list("urteil/toxiproxy") for tag in image.tags}
    assert [reference in tags for reference in references] == [True, False, True]


def changed_toxiproxy(engine: Engine, checkout: Path) -> str:
    with (checkout / "compose/toxiproxy/Dockerfile").open("a") as file:
        file.write(f"# {time.time()}\n")
    return ensure_images(engine, ["toxiproxy"])["toxiproxy"]


@pytest.mark.thorough
def test_failed_build_reports_its_cause_and_leaves_nothing(engine: Engine, checkout: Path) -> None:
    with (checkout / "compose/broker/Dockerfile").open("a") as file:
        file.write("RUN echo step one\nRUN echo the reason; exit 3\n")
    before = everything(engine)
    containers = len(engine.client.containers.list(all=True))
    with pytest.raises(
        MissingDependency, match=r"image urteil/broker.*its build on .* failed"
    ) as failed:
        ensure_images(engine, ["broker"])
    assert "the reason" in str(failed.value)
    assert "urteil images build broker" in str(failed.value)
    assert everything(engine) == before
    assert len(engine.client.containers.list(all=True)) == containers


@pytest.mark.thorough
def test_full_disk_is_reported(engine: Engine, checkout: Path) -> None:
    with (checkout / "compose/broker/Dockerfile").open("a") as file:
        file.write("RUN echo write error: No space left on device; exit 1\n")
    with pytest.raises(MissingDependency, match=r"disk of the engine \(/.*\) is full"):
        ensure_images(engine, ["broker"])


def test_missing_base_image_is_reported(engine: Engine, checkout: Path) -> None:
    edit(checkout)
    with pytest.raises(MissingDependency, match="no-such-base"):
        ensure_images(engine, ["broker"], base="localhost:1/no-such-base:1")


def test_vanished_engine_is_reported(engine: Engine) -> None:
    gone = dataclasses.replace(engine, client=docker.DockerClient("tcp://127.0.0.1:9", "1.41"))
    with pytest.raises(MissingDependency, match="docker is missing: the engine failed"):
        ensure_images(gone, ["toxiproxy"])


def test_unknown_image_is_rejected(engine: Engine) -> None:
    for name in ("brokr", "broker:1", "kafka:../x"):
        with pytest.raises(ValueError, match="known: broker"):
            ensure_images(engine, [name])


def test_zookeeper_and_kafka_share_java(engine: Engine, built: dict[str, str]) -> None:
    kafka = ensure_images(engine, ["kafka:3.9.1"], print)["kafka:3.9.1"]
    shared = zip(layers(engine, kafka), layers(engine, built["zookeeper"]), strict=False)
    assert [layer == other for layer, other in shared][:2] == [True, True]
    argv = ["java", "-cp", "/opt/kafka/libs/*", "kafka.Kafka", "--version"]
    done = engine.client.containers.run(kafka, argv, remove=True, network_mode="none")
    assert b"3.9.1" in done


def test_broker_image_pins_equal_the_lock() -> None:
    pinned = (ROOT / "compose/broker/requirements.txt").read_text()
    names = re.findall(r"^([a-z0-9-]+)==", pinned, re.MULTILINE)
    expected = ["cffi", "crc32c", "cryptography", "kazoo", "pyarrow", "pycparser", "uvloop"]
    assert names == expected
    lock = (ROOT / "requirements.lock").read_text()
    for block in re.split(r"^(?=[a-z0-9-]+==)", pinned, flags=re.MULTILINE)[1:]:
        assert block.rstrip() in lock, "make lock writes both"
