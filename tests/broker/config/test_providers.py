"""Config providers: environment, property files and folders of secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.config.test_dynamic_settings import BrokerUnderTest
from tests.broker.net.raw import run
from urteil.broker.config.broker_config import load_config
from urteil.broker.config.providers import resolve
from urteil.broker.config.values import ConfigError
from urteil.broker.controller.config_administration import BROKER
from urteil.broker.wire.errors import ErrorCode

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = {
    "config.providers": "env,file,directory",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.directory.class": f"{PACKAGE}.DirectoryConfigProvider",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("URTEIL_RACK", "r7")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "one").write_text("eins\n")
    (tmp_path / "secrets.properties").write_text("key = gehëim\nother=${env:URTEIL_RACK}\n")
    return tmp_path


def value_of(folder: Path, value: str, **params: str) -> str:
    """What becomes of a value; `params` by provider and name, with `_` for dots."""
    more = {
        f"config.providers.{name.replace('_', '.', 1).replace('.', '.param.', 1)}".replace(
            "_", "."
        ): text.replace("DIR", str(folder))
        for name, text in params.items()
    }
    return resolve({**PROVIDERS, **more, "x": value.replace("DIR", str(folder))})["x"]


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("${env:URTEIL_RACK}", "r7"),
        ("<${env:URTEIL_RACK}|${env:URTEIL_RACK}>", "<r7|r7>"),
        ("${file:DIR/secrets.properties:key}", "gehëim"),
        ("${file:DIR/secrets.properties:other}", "${env:URTEIL_RACK}"),
        ("${directory:DIR/secrets:one}", "eins\n"),
    ],
)
def test_variable_is_resolved(folder: Path, value: str, known: str) -> None:
    assert value_of(folder, value) == known


@pytest.mark.parametrize(
    "value",
    [
        "${env:NO_SUCH_VARIABLE}",
        "${file::key}",
        "${file:/x.properties}",
        "${directory:/no/such/folder:one}",
        "${vault:path:key}",
        "${env:URTEIL_RACK",
    ],
)
def test_unknown_variable_stays_with_a_warning(
    folder: Path, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert value_of(folder, value) == value
    assert not value.endswith("}") or f"x: {value} is not resolved" in caplog.text


@pytest.mark.parametrize(
    ("value", "params", "known"),
    [
        ("${env:URTEIL_RACK}", {"env_allowlist_pattern": "URTEIL_.*"}, True),
        ("${env:URTEIL_RACK}", {"env_allowlist_pattern": "URTEIL"}, False),
        ("${file:DIR/secrets.properties:key}", {"file_allowed_paths": "DIR"}, True),
        ("${file:DIR/secrets.properties:key}", {"file_allowed_paths": "DIR/secrets"}, False),
        ("${file:DIR/secrets/../secrets.properties:key}", {"file_allowed_paths": "DIR/secrets"},
         False),
        ("${directory:DIR/secrets:one}", {"directory_allowed_paths": "/tmp,DIR/secrets"}, True),
        ("${directory:DIR/secrets:../secrets.properties}", {}, False),
    ],
)  # fmt: skip
def test_parameters_limit_provider_reads(
    folder: Path, value: str, params: dict[str, str], known: bool
) -> None:
    assert (value_of(folder, value, **params) != value.replace("DIR", str(folder))) is known


@pytest.mark.parametrize(
    ("value", "params", "why"),
    [
        ("${env:path:URTEIL_RACK}", {}, "Path is not supported for EnvVarConfigProvider"),
        ("${file:DIR/missing:key}", {}, "Could not read file .*/missing"),
        ("x", {"file_allowed_paths": "secrets"}, "file.param.allowed.paths: .*is not absolute"),
        ("x", {"file_allowed_paths": "DIR/none"}, "does not exist"),
        ("x", {"env_allowlist_pattern": "("}, "env.param.allowlist.pattern: not a regular"),
    ],
)
def test_unreadable_value_is_rejected(
    folder: Path, value: str, params: dict[str, str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        value_of(folder, value, **params)


def test_unknown_provider_class_is_rejected_by_name() -> None:
    properties = {"config.providers": "a", "config.providers.a.class": "com.example.Vault"}
    with pytest.raises(ConfigError, match=r"com.example.Vault .* config.providers.a.class"):
        resolve(properties)


def test_property_file_is_resolved_before_validation(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("URTEIL_ID", " 5 ")
    config = load_config(
        {
            **PROVIDERS,
            "node.id": "${env:URTEIL_ID}",
            "zookeeper.connect": "zk:1",
            "broker.rack": "${env:URTEIL_RACK}",
            "ssl.key.password": f"${{directory:{folder}/secrets:one}}",
        }
    )
    assert (config.broker_id, config.broker_rack) == (5, "r7")
    assert config.properties.value("ssl.key.password") == "eins"
    assert "unknown property" not in caplog.text


def test_dynamic_settings_are_resolved(folder: Path) -> None:
    name = "listener.name.a.ssl.key.password"
    variable = f"${{directory:{folder}/secrets:one}}"

    async def scenario() -> None:
        broker = BrokerUnderTest(password_encoder_secret="s", password_encoder_iterations="1024")
        broker.properties.static = {**broker.properties.static, **PROVIDERS}
        assert (await broker.set(BROKER, "1", **{name: variable}))[0] is ErrorCode.NONE
        assert broker.properties.own == {name: variable}
        assert broker.properties[name] == "eins\n"
        missing = f"${{file:{folder}/missing:key}}"
        error, message = await broker.set(BROKER, "1", **{name: missing})
        assert error is ErrorCode.INVALID_REQUEST
        assert "missing" in (message or "")
        assert broker.properties[name] == "eins\n"

    run(scenario())


def test_dynamic_variable_is_validated_unresolved() -> None:
    async def scenario() -> None:
        broker = BrokerUnderTest()
        broker.properties.static = {**broker.properties.static, **PROVIDERS}
        error, message = await broker.set(BROKER, "", log_retention_ms="${env:URTEIL_RACK}")
        assert error is ErrorCode.INVALID_REQUEST
        assert "Not a number of type LONG" in (message or "")

    run(scenario())
