"""Settings: a TOML file and the environment become one frozen, validated value. An unknown key is an error.

Every key can come from the environment as MERK_<SECTION>__<KEY>, which wins over the file.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.errors import CommandError

IDENTITY = re.compile(r"^(telegram:-?\d+|matrix:@[^:\s]+:\S+|terminal:\w+)$")
TELEGRAM_SECRET = re.compile(r"^[A-Za-z0-9_-]{1,256}$")


class ConfigError(CommandError):
    """A setting is missing, unknown or of the wrong kind; the text names file, key and remedy."""

    code = 2


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "merk"


class _Section(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Tenant(_Section):
    name: str = Field(default="Merk", min_length=1, max_length=64)
    data_dir: Path = Field(default_factory=default_data_dir)
    timezone: str = "Europe/Berlin"
    language: Literal["en", "de", "ru"] = "en"

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError('must be an IANA zone such as "Europe/Berlin"') from error
        return value


class Access(_Section):
    owners: tuple[str, ...] = ()
    admit: Literal["pairing", "allowlist", "open"] = "pairing"
    allow: tuple[str, ...] = ()

    @field_validator("owners", "allow")
    @classmethod
    def _identities(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for identity in value:
            if not IDENTITY.match(identity):
                raise ValueError(f'{identity!r} must look like "telegram:42" or "matrix:@ada:example.org"')
        return value


class Telegram(_Section):
    token: SecretStr | None = None
    base_url: str | None = None
    """The server's root, without /bot; for a self-hosted Bot API server."""
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str | None = None
    webhook_secret: SecretStr | None = None
    webhook_listen: str = "127.0.0.1:8443"

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> Self:
        if self.mode == "webhook":
            if not self.webhook_url or not self.webhook_url.startswith("https://"):
                raise ValueError('mode = "webhook" needs webhook_url, beginning with https://')
            secret = self.webhook_secret.get_secret_value() if self.webhook_secret else ""
            if not TELEGRAM_SECRET.match(secret):
                raise ValueError('mode = "webhook" needs webhook_secret: 1 to 256 of A-Z a-z 0-9 _ -')
        return self


class AnthropicModels(_Section):
    api_key: SecretStr | None = None
    base_url: str | None = None
    default: str = "claude-sonnet-5-5"
    smart: str = "claude-opus-5-5"
    small: str = "claude-haiku-5-5"


class OllamaModels(_Section):
    host: str | None = None
    chat: str | None = None
    """None takes the first installed model that can chat."""
    small: str | None = None
    num_ctx: int = Field(default=8192, ge=2048, le=1_048_576)


class BuiltinModels(_Section):
    path: Path | None = None


class Model(_Section):
    provider: Literal["auto", "anthropic", "ollama", "builtin"] = "auto"
    anthropic: AnthropicModels = AnthropicModels()
    ollama: OllamaModels = OllamaModels()
    builtin: BuiltinModels = BuiltinModels()


class Embedding(_Section):
    provider: Literal["auto", "builtin", "ollama"] = "auto"
    model: str = "nomic-embed-text"
    url: str | None = None
    """None takes model.ollama.host."""


class MemorySection(_Section):
    window: int = Field(default=12, ge=2, le=200)
    window_max: int = Field(default=24, ge=2, le=400)
    recall_sessions: int = Field(default=3, ge=0, le=10)
    facts_budget: int = Field(default=6000, ge=500, le=100_000)
    """Characters of facts that go into every prompt."""

    @model_validator(mode="after")
    def _window_grows(self) -> Self:
        if self.window_max < self.window:
            raise ValueError("window_max must not be smaller than window")
        return self


class Settings(BaseSettings):
    """All of it. Build with `load`."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="MERK_",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    tenant: Tenant = Tenant()
    access: Access = Access()
    telegram: Telegram = Telegram()
    model: Model = Model()
    embedding: Embedding = Embedding()
    memory: MemorySection = MemorySection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings  # the environment wins over the file's values


def find_file(named: Path | None = None) -> Path | None:
    """The configuration file: --config, MERK_CONFIG, ./config.toml, ~/.config/merk/config.toml; None = no file."""
    if named is None and (variable := os.environ.get("MERK_CONFIG")):
        named = Path(variable)
    if named is not None:
        if not named.is_file():
            raise ConfigError(f"{named}: there is no such file. Name another with --config, or run `merk init`.")
        return named
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "merk" / "config.toml"
    return next((path for path in (Path("config.toml"), home) if path.is_file()), None)


def load(named: Path | None = None) -> Settings:
    """Read the settings. Raises `ConfigError`."""
    path = find_file(named)
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: not valid TOML ({error}). Compare with config.example.toml.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: cannot be read ({error}).") from error
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise ConfigError(_explain(error, path)) from error
    if settings.model.anthropic.api_key is None and (key := os.environ.get("ANTHROPIC_API_KEY")):
        anthropic = settings.model.anthropic.model_copy(update={"api_key": SecretStr(key)})
        model = settings.model.model_copy(update={"anthropic": anthropic})
        settings = settings.model_copy(update={"model": model})
    return settings


def _explain(error: ValidationError, path: Path | None) -> str:
    source = str(path) if path else "environment"
    lines: list[str] = []
    for problem in error.errors(include_url=False, include_input=False):
        keys = [str(part) for part in problem["loc"]]
        name = ".".join(keys) or "the file"
        variable = "MERK_" + keys[0].upper() + "".join(f"__{key.upper()}" for key in keys[1:]) if keys else ""
        where = f"environment, {variable}" if variable in os.environ else source
        if problem["type"] == "extra_forbidden":
            said = "unknown key. Compare with config.example.toml, or delete it."
        else:
            said = problem["msg"].removeprefix("Value error, ") + "."
        lines.append(f"{where}: {name}: {said}")
    return "\n".join(lines)
