"""The lab's images: each is built when it is missing or out of date."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import docker
import requests

from urteil.harness.dependencies.installation import MissingDependency, install_lock
from urteil.harness.runtimes.containers.base_image import base_image
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.containers.image_build import CHECKOUT, IMAGE, INPUTS, build, labels
from urteil.harness.runtimes.containers.image_recipes import NAMES, Recipe, recipe

Report = Callable[[str], None]

__all__ = ["NAMES", "ImageState", "ensure_images", "image_states"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageState:
    """One line of `urteil images list`; `state` is current, out of date or missing."""

    name: str
    state: str
    reference: str
    size_bytes: int


def ensure_images(
    engine: Engine,
    names: Sequence[str],
    report: Report = lambda line: None,
    *,
    base: str | None = None,
) -> dict[str, str]:
    """The image reference of each name: "broker", "zookeeper", "toxiproxy", "kafka[:VERSION]".

    Builds images that are missing or made of other inputs than the current ones. The reference
    carries the hash of the inputs, so that builds of another checkout do not change it; the tag
    `latest` (for Kafka, its version) follows the newest build. No image has an ENTRYPOINT: commands
    are complete, and `sleep infinity` works in all but toxiproxy's. Replaced images of this
    checkout without a container are removed. `base` names another Debian 12 image than that of
    `base_image`; it does not rebuild current images. Raises ValueError for an unknown name, and
    MissingDependency with the end of the build's output for a failed build.
    """
    recipes = {name: recipe(name) for name in names}
    with _engine_failures():
        stale = [recipe for recipe in recipes.values() if not _is_current(engine, recipe)]
        if stale:
            with install_lock("images"):
                for stale_recipe in stale:
                    _build(engine, stale_recipe, base, report)
    return {name: recipe.reference for name, recipe in recipes.items()}


def image_states(engine: Engine) -> list[ImageState]:
    """The state of the image of every name. Builds nothing."""
    with _engine_failures():
        return [_state(engine, name) for name in NAMES]


@contextmanager
def _engine_failures() -> Iterator[None]:
    """Raise engine failures as MissingDependency."""
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise MissingDependency("docker", f"the engine failed: {error}; look at its log") from error


def _build(engine: Engine, recipe: Recipe, base: str | None, report: Report) -> None:
    if _is_current(engine, recipe):
        return  # another process built it while this one waited
    base = (base or base_image(engine, report)) if recipe.on_base else None
    report(f"building {recipe.newest_tag}")
    build(engine, recipe, base)
    _remove_replaced(engine, recipe)


def _is_current(engine: Engine, image_recipe: Recipe) -> bool:
    """Whether the image of these inputs exists. If so, the moving tag is set to it."""
    image = _find(engine, image_recipe.reference)
    if image is None or image.labels.get(INPUTS) != image_recipe.inputs:
        return False
    if image_recipe.newest_tag not in image.tags:
        image.tag(image_recipe.newest_tag)
    return True


def _find(engine: Engine, reference: str) -> Any | None:
    try:
        return engine.client.images.get(reference)
    except docker.errors.ImageNotFound:
        return None


def _remove_replaced(engine: Engine, image_recipe: Recipe) -> None:
    """Remove images of this name and checkout, of other inputs, without a container."""
    own_labels = labels(image_recipe)
    filters = {"label": [f"{key}={own_labels[key]}" for key in (IMAGE, CHECKOUT)]}
    for image in engine.client.images.list(filters=filters):
        used = engine.client.containers.list(all=True, filters={"ancestor": image.id})
        if image.labels.get(INPUTS) == image_recipe.inputs or used:
            continue
        for tag in image.tags:
            with suppress(docker.errors.APIError):
                engine.client.images.remove(tag)


def _state(engine: Engine, name: str) -> ImageState:
    try:
        image_recipe = recipe(name)
    except MissingDependency as error:
        return ImageState(name=name, state=f"unknown: {error}", reference="", size_bytes=0)
    if image := _find(engine, image_recipe.reference):
        return _image_state(name, "current", image_recipe.reference, image)
    if image := _find(engine, image_recipe.newest_tag):
        return _image_state(name, "out of date", image_recipe.newest_tag, image)
    return ImageState(name=name, state="missing", reference="", size_bytes=0)


def _image_state(name: str, state: str, reference: str, image: Any) -> ImageState:
    return ImageState(
        name=name, state=state, reference=reference, size_bytes=int(image.attrs["Size"])
    )
