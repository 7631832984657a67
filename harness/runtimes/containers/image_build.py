"""One build through the engine's API: it ends complete and tagged, or leaves no image."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import docker
import requests

from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.runtimes.containers.build_context import Context
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.containers.image_recipes import Recipe

INPUTS = "org.urteil.inputs"
IMAGE = "org.urteil.image"
CHECKOUT = "org.urteil.checkout"
STAGE = "org.urteil.stage"
TIMEOUT_S = 900
TAIL_LINES = 20
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class _Log:
    """The engine's output about a build, and the images that it created."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seen: list[str] = []
        self.made: list[str] = []
        self.error = ""

    def read(self, events: Iterator[dict[str, Any]]) -> None:
        cached = False
        for event in events:
            self.error = event.get("error", self.error)
            for line in event.get("stream", "").splitlines():
                words = line.split()
                if words[:1] == ["--->"] and len(words) == 2:
                    self.seen.append(words[1])
                    if not cached and self._creates_image:
                        self.made.append(words[1])
                cached = words == ["--->", "Using", "cache"]
                if line.strip() and not line.startswith("Removing intermediate"):
                    self.lines.append(line.rstrip())

    @property
    def _creates_image(self) -> bool:
        """Whether the current step created an image: FROM only names one."""
        steps = [line for line in self.lines if line.startswith("Step ")]
        return bool(steps) and " : FROM " not in steps[-1]


def build(engine: Engine, recipe: Recipe, base: str | None) -> None:
    """Build and tag the image of `recipe` on the image `base`.

    Raises MissingDependency with the build's last lines when it fails, and removes its images.
    """
    context = Context()
    recipe.fill(context, engine.architecture)
    log = _Log()
    try:
        with context.finish() as tar:
            log.read(engine.client.api.build(**_options(recipe, base, tar)))
    except (docker.errors.DockerException, requests.RequestException) as error:
        log.error = log.error or str(error)
    except BaseException:
        _forget(engine, log.made)
        raise
    if log.error:
        _forget(engine, log.made)
        raise MissingDependency(f"image {recipe.repository}", _failure(engine, recipe, base, log))
    engine.client.images.get(recipe.reference).tag(recipe.newest_tag)
    _sweep_stages(engine, recipe, log.seen)


def _options(recipe: Recipe, base: str | None, tar: Any) -> dict[str, Any]:
    arguments = {name: os.environ[name] for name in PROXIES if name in os.environ}
    return {
        "fileobj": tar,
        "custom_context": True,
        "tag": recipe.reference,
        "labels": labels(recipe),
        "buildargs": arguments | ({"BASE": base} if base else {}),
        "network_mode": "host",
        "rm": True,
        "forcerm": True,
        "decode": True,
        "timeout": TIMEOUT_S,
    }


def labels(recipe: Recipe) -> dict[str, str]:
    """Labels with the image's owner and the hash of its inputs."""
    return {INPUTS: recipe.inputs, IMAGE: recipe.name, CHECKOUT: recipe.checkout}


def _failure(engine: Engine, recipe: Recipe, base: str | None, log: _Log) -> str:
    if "no space left on device" in log.error or any(
        "no space left on device" in line.lower() for line in log.lines[-TAIL_LINES:]
    ):
        root = engine.client.info().get("DockerRootDir", "its data folder")
        return (
            f"the disk of the engine ({root}) is full: free some space there, for example with "
            "`docker system df` and `docker builder prune`, and build again"
        )
    tail = "\n".join(log.lines[-TAIL_LINES:])
    return (
        f"its build on {base or 'scratch'} failed: {log.error}\n{tail}\n"
        f"mend that and build it again: urteil images build {recipe.name}"
    )


def _forget(engine: Engine, images: list[str]) -> None:
    """Remove the images of a failed build, except those that are in use or that the engine refuses
    to remove."""
    for image in reversed(images):
        with suppress(docker.errors.APIError, requests.RequestException):
            engine.client.api.remove_image(image)


def _sweep_stages(engine: Engine, recipe: Recipe, stage_ids: list[str]) -> None:
    """Remove builder stages of earlier builds. The new ones stay as cache for the next build."""
    kind = recipe.repository.removeprefix("urteil/")
    stages = {"dangling": True, "label": f"{STAGE}={kind}"}
    for image in engine.client.images.list(filters=stages):
        if not any(image.id.removeprefix("sha256:").startswith(stage_id) for stage_id in stage_ids):
            with suppress(docker.errors.APIError):
                engine.client.api.remove_image(image.id)
