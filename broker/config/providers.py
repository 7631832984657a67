"""Config providers: variables `${provider:key}` and `${provider:path:key}` (KIP-297, KIP-421).

`config.providers` names the providers, `config.providers.NAME.class` has the class of each and
`config.providers.NAME.param.*` its parameters. A variable with an unknown provider or key stays as
it is written, with a line in the log, as in Apache Kafka. Values from providers are not searched
for further variables.
"""

from __future__ import annotations

import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from urteil.broker.config.property_file import parse_properties
from urteil.broker.config.values import ConfigError

log = logging.getLogger("config")

PREFIX = "config.providers"
_CLASSES = "org.apache.kafka.common.config.provider."
_VARIABLE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


class Provider(ABC):
    """Finds values by path and key."""

    def __init__(self, name: str, params: Mapping[str, str]) -> None:
        """Raises ConfigError for an invalid parameter."""
        self._name = name
        self._params = params

    @abstractmethod
    def find(self, path: str, key: str) -> str | None:
        """Return the value, or None if it does not exist. Raises ConfigError if it cannot be
        read."""

    def _refuse(self, param: str, why: str) -> ConfigError:
        name = f"{PREFIX}.{self._name}.param.{param}"
        return ConfigError(f"Invalid value {self._params[param]} for configuration {name}: {why}")


class Variables(Provider):
    """Environment variables: `${env:KEY}`."""

    def __init__(self, name: str, params: Mapping[str, str]) -> None:
        super().__init__(name, params)
        try:
            self._allowed = re.compile(params.get("allowlist.pattern", ".*"))
        except re.error as error:
            raise self._refuse("allowlist.pattern", f"not a regular expression: {error}") from None

    def find(self, path: str, key: str) -> str | None:
        if path:
            raise ConfigError(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}': write "
                f"${{{self._name}:{key}}}"
            )
        return os.environ.get(key) if self._allowed.fullmatch(key) else None


class _OnDisk(Provider):
    """Providers of files. Only files and folders of `allowed.paths` are read."""

    def __init__(self, name: str, params: Mapping[str, str]) -> None:
        super().__init__(name, params)
        paths = params.get("allowed.paths", "")
        self._allowed = [self._normal(path) for path in paths.split(",")] if paths else None

    def _normal(self, path: str) -> Path:
        normal = Path(os.path.normpath(path))
        if not path.startswith("/"):
            raise self._refuse("allowed.paths", f"Path {normal} is not absolute")
        if not normal.exists():
            raise self._refuse("allowed.paths", f"Path {normal} does not exist")
        return normal

    def find(self, path: str, key: str) -> str | None:
        if not path:
            return None
        place = Path(path)
        if self._allowed is not None:
            place = Path(os.path.normpath(path))
            if not any(place.is_relative_to(root) for root in self._allowed):
                log.warning("%s.%s: the path %s is not allowed", PREFIX, self._name, path)
                return None
        try:
            return self._read(place, key)
        except (OSError, ValueError) as error:
            name = type(self).__name__
            raise ConfigError(
                f"Could not read {name.lower()} {path} for ${{{self._name}:{path}:{key}}}: {error}"
            ) from None

    @abstractmethod
    def _read(self, place: Path, key: str) -> str | None:
        """Raises OSError, ValueError."""


class File(_OnDisk):
    """A property file in UTF-8: `${file:PATH:KEY}`."""

    def _read(self, place: Path, key: str) -> str | None:
        return parse_properties(place.read_text(encoding="utf-8")).get(key)


class Folder(_OnDisk):
    """A folder with one value in each file, as secrets are mounted: `${directory:PATH:FILE}`."""

    def _read(self, place: Path, key: str) -> str | None:
        if not place.is_dir():
            log.warning("%s.%s: the path %s is not a folder", PREFIX, self._name, place)
            return None
        file = place / key
        if key in ("", ".", "..") or "/" in key or not file.is_file():
            return None
        return file.read_bytes().decode("utf-8", "replace")


PROVIDERS: Mapping[str, type[Provider]] = {
    f"{_CLASSES}EnvVarConfigProvider": Variables,
    f"{_CLASSES}FileConfigProvider": File,
    f"{_CLASSES}DirectoryConfigProvider": Folder,
}


def resolve(
    values: Mapping[str, str], properties: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return `values` with all variables resolved by the providers in `properties`. Raises
    ConfigError."""
    providers = _providers(values if properties is None else properties)
    return {name: _resolve_variables(name, value, providers) for name, value in values.items()}


def _providers(properties: Mapping[str, str]) -> dict[str, Provider]:
    providers: dict[str, Provider] = {}
    for name in properties.get(PREFIX, "").split(","):
        key = f"{PREFIX}.{name}.class"
        if key not in properties:
            continue
        made = PROVIDERS.get(properties[key])
        if made is None:
            raise ConfigError(
                f"Invalid value {properties[key]} for configuration {key}: Could not load config "
                f"provider class; this broker has {', '.join(PROVIDERS)}"
            )
        prefix = f"{PREFIX}.{name}.param."
        providers[name] = made(
            name,
            {
                key.removeprefix(prefix): value
                for key, value in properties.items()
                if key.startswith(prefix)
            },
        )
    return providers


def _resolve_variables(name: str, value: str, providers: Mapping[str, Provider]) -> str:
    def resolve_match(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        known = None if provider is None else provider.find(match[3] or "", match[4])
        if known is None:
            log.warning("%s: %s is not resolved and stays as it is written", name, match[0])
            return match[0]
        return known

    return _VARIABLE.sub(resolve_match, value)
