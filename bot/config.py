"""Settings: a TOML file and the environment become one frozen, validated value. An unknown key is an error.

Every key can come from the environment as MERK_<SECTION>__<KEY>, which wins over the file.
"""

import json
import os
import re
import tomllib
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bot.errors import CommandError
from bot.hook_settings import Hook, checked_names

IDENTITY = re.compile(r"^(telegram:-?\d+|matrix:@[^:\s]+:\S+|terminal:\w+)$")
MATRIX_USER = re.compile(r"^@[^:\s]+:\S+$")
TELEGRAM_TOKEN = re.compile(r"^\d+:[A-Za-z0-9_-]+$")
TELEGRAM_SECRET = re.compile(r"^[A-Za-z0-9_-]{1,256}$")
LISTEN = re.compile(r"^(\[[0-9a-fA-F:]+\]|[^\s:]+):(\d{1,5})$")

TIME_OF_DAY = re.compile(r"^([01]\d|2[0-3]):[0-5]\d$")

_PREFIX = "MERK_"
_COMPARE = "Compare with config.example.toml."


class ConfigError(CommandError):
    """A setting is missing, unknown or of the wrong kind; the text names file, key and remedy."""

    def __init__(self, said: str) -> None:
        super().__init__(said, code=2)


def default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "merk"


class _Section(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


def listed(value: object) -> object:
    """A list in an environment variable: JSON, or words with commas between them."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError('must be a list such as ["telegram:42"]') from error
    return [word for each in value.split(",") if (word := each.strip())]


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

    @field_validator("owners", "allow", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return listed(value)

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

    @field_validator("token")
    @classmethod
    def _shaped(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not TELEGRAM_TOKEN.match(value.get_secret_value()):
            raise ValueError("must look like 123456:ABC-DEF; @BotFather shows it")
        return value

    @field_validator("base_url")
    @classmethod
    def _root(cls, value: str | None) -> str | None:
        return _address(value)

    @field_validator("webhook_listen")
    @classmethod
    def _listens(cls, value: str) -> str:
        found = LISTEN.match(value)
        if not found or not 0 < int(found[2]) < 65536:  # noqa: PLR2004 - TCP's own bound
            raise ValueError('must be an address and a port, such as "127.0.0.1:8443"')
        return value

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> Self:
        if self.mode == "webhook":
            if not self.webhook_url or not self.webhook_url.startswith("https://"):
                raise ValueError('mode = "webhook" needs webhook_url, beginning with https://')
            secret = self.webhook_secret.get_secret_value() if self.webhook_secret else ""
            if not TELEGRAM_SECRET.match(secret):
                raise ValueError('mode = "webhook" needs webhook_secret: 1 to 256 of A-Z a-z 0-9 _ -')
        return self


class Matrix(_Section):
    homeserver: str | None = None
    """The root of its client-server API; None leaves Matrix alone."""
    user_id: str | None = None
    password: SecretStr | None = None
    """For the first login, for a token that has expired, and where the homeserver asks before it takes signing keys."""
    access_token: SecretStr | None = None
    device_id: str | None = None
    encryption: Literal["required", "optional", "off"] = "required"
    edit_seconds: float = Field(default=5.0, ge=0, le=60)
    """The least time between two edits of a growing answer; 0 shows typing and sends once."""
    avatar: Path | None = None

    @field_validator("homeserver")
    @classmethod
    def _root(cls, value: str | None) -> str | None:
        return _address(value)

    @field_validator("user_id")
    @classmethod
    def _shaped(cls, value: str | None) -> str | None:
        if value is not None and not MATRIX_USER.match(value):
            raise ValueError('must look like "@merk:example.org"')
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.homeserver is not None and not (self.user_id and (self.password or self.access_token)):
            raise ValueError("homeserver needs user_id, and password or access_token")
        return self


class AnthropicModels(_Section):
    api_key: SecretStr | None = None
    base_url: str | None = None
    default: str = "claude-sonnet-5-5"
    smart: str = "claude-opus-5-5"
    small: str = "claude-haiku-5-5"
    advisor: str | None = None
    """None takes `smart`."""
    compaction_models: tuple[str, ...] = ("claude-sonnet-5-5", "claude-opus-5-5")
    """Those of them that can condense long chats are asked to; the others get a window."""
    betas: tuple[Literal["compact-2026-09-04", "compact-2026-01-12"], ...] = ("compact-2026-09-04",)
    """Compaction on demand, or at a threshold (at least 50,000 tokens); none at all: windows only."""
    compact_from: int = Field(default=8000, ge=2000, le=900_000)
    """Tokens, beside the newest messages, from which on a chat is condensed."""
    diagnostics: bool = False
    """Ask the API why it did not find in its cache what it should have."""

    @field_validator("compaction_models", "betas", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return listed(value)

    @field_validator("api_key")
    @classmethod
    def _given(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().strip():
            raise ValueError("is empty. Fill it in, or delete the line")
        return value

    @field_validator("base_url")
    @classmethod
    def _root(cls, value: str | None) -> str | None:
        return _address(value)


class OllamaModels(_Section):
    host: str | None = None
    chat: str | None = None
    """None takes the first installed model that can chat."""
    small: str | None = None
    smart: str | None = None
    num_ctx: int = Field(default=8192, ge=2048, le=1_048_576)


class BuiltinModels(_Section):
    path: Path | None = None


class Model(_Section):
    provider: Literal["auto", "anthropic", "ollama", "builtin"] = "auto"
    fallback: tuple[Literal["anthropic", "ollama", "builtin"], ...] = ()
    """Who answers, in this order, while the provider does not."""
    trivial_to_small: bool = False
    advisor_calls: int = Field(default=1, ge=0, le=5)
    """In one answer, at most."""
    prices: Path | None = None
    anthropic: AnthropicModels = AnthropicModels()
    ollama: OllamaModels = OllamaModels()
    builtin: BuiltinModels = BuiltinModels()

    @field_validator("fallback", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return listed(value)


class Budget(_Section):
    """US dollars of a day in the tenant's time zone; inf = no limit."""

    per_user_daily_usd: float = Field(default=5.0, ge=0)
    background_daily_usd: float = Field(default=1.0, ge=0)
    advisor_daily_usd: float = Field(default=1.0, ge=0)
    """Of one person, within their own."""
    messages_per_minute: int = Field(default=20, ge=1, le=1000)


class Embedding(_Section):
    provider: Literal["auto", "builtin", "ollama", "tei"] = "auto"
    model: str = "nomic-embed-text"
    url: str | None = None
    """Of the server; None takes model.ollama.host, for Ollama."""
    query_prefix: str | None = None
    """What the model wants before a question and before a document; None takes what is known of it."""
    document_prefix: str | None = None


class MemorySection(_Section):
    window: int = Field(default=12, ge=2, le=200)
    window_max: int = Field(default=24, ge=2, le=400)
    ephemeral_ttl: int = Field(default=4, ge=3, le=5)
    """Turns in a row that do not touch the open piece of work before it is closed."""
    recall_sessions: int = Field(default=3, ge=0, le=10)
    facts_budget: int = Field(default=6000, ge=500, le=100_000)
    """Characters of facts that go into every prompt."""
    fusion: Literal["linear", "rrf", "weighted_rrf", "minmax"] = "linear"
    """How the judgements of an earlier message become one score."""
    refit: bool = False
    """Learn the weights of that from what answers cite and people confirm."""

    @model_validator(mode="after")
    def _window_grows(self) -> Self:
        if self.window_max < self.window:
            raise ValueError("window_max must not be smaller than window")
        return self


class Web(_Section):
    enabled: bool = False
    trusted_proxy: tuple[str, ...] = ()
    """Addresses or networks whose word on client and scheme counts."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    listen: str = "127.0.0.1:8080"
    url: str | None = None
    """What people's browsers call it; None: as it listens."""
    secret: SecretStr | None = None
    """Another one logs everybody out."""
    hooks: dict[str, Hook] = {}
    """By the name in their address."""

    @field_validator("hooks")
    @classmethod
    def _named(cls, value: dict[str, Hook]) -> dict[str, Hook]:
        checked_names(value)
        return value

    @field_validator("trusted_proxy", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [word for each in value.split(",") if (word := each.strip())] if isinstance(value, str) else value

    @field_validator("trusted_proxy")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            try:
                ip_network(each)
            except ValueError as error:
                raise ValueError(f'{each!r} must be an address or a network, such as "127.0.0.1"') from error
        return value

    @field_validator("listen")
    @classmethod
    def _listens(cls, value: str, info: ValidationInfo) -> str:
        found = LISTEN.match(value)
        if not found or not 0 <= int(found[2]) < 65536:  # noqa: PLR2004 - TCP's own bound; 0 takes a free port
            raise ValueError('must be an address and a port, such as "127.0.0.1:8080"')
        is_safe = info.data.get("trusted_proxy") or info.data.get("tls_certificate")
        if info.data.get("enabled") and not _is_loopback(found[1]) and not is_safe:
            raise ValueError(
                f"{found[1]} can be reached from other machines, and links and sessions would cross the network for "
                "anybody to read. Listen on 127.0.0.1 behind a proxy that ends TLS; or set web.trusted_proxy to that "
                "proxy's address, or web.tls_certificate and web.tls_key"
            )
        return value

    @field_validator("url")
    @classmethod
    def _root(cls, value: str | None) -> str | None:
        value = _address(value)
        return value.rstrip("/") if value else None

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together")
        return self

    @property
    def address(self) -> str:
        """What people's browsers call it, without a slash at its end."""
        scheme = "https" if self.tls_certificate else "http"
        return self.url or f"{scheme}://{self.listen}"

    @property
    def is_local(self) -> bool:
        """Only this machine's browsers find it."""
        return self.url is None and _is_loopback(self.listen.rpartition(":")[0])


class TelemetrySection(_Section):
    retention_days: int = Field(default=90, ge=1, le=3650)
    cleanup: str = "03:30"
    """By the tenant's clock."""

    @field_validator("cleanup")
    @classmethod
    def _time_of_day(cls, value: str) -> str:
        if not TIME_OF_DAY.match(value):
            raise ValueError('must be a time of day, such as "03:30"')
        return value


Days = Annotated[int, Field(ge=1, le=3650)]


class RetentionSection(_Section):
    """Days after which what is of no use any more goes; None keeps it for ever."""

    messages_days: Days | None = None
    working_output_days: Days | None = None
    summaries_days: Days | None = None
    inbox_days: Days = 14
    """Update ids are recognised for so long; a transport may start them anew after a quiet week."""
    outbox_days: Days = 14
    hooks_days: Days = 90
    """Ids of events: one that is sent again is recognised for so long."""
    backups_days: Days = 7


class Settings(_Section):
    """All of it. `load` builds it from the file and the environment."""

    tenant: Tenant = Tenant()
    access: Access = Access()
    telegram: Telegram = Telegram()
    matrix: Matrix = Matrix()
    model: Model = Model()
    embedding: Embedding = Embedding()
    memory: MemorySection = MemorySection()
    budget: Budget = Budget()
    web: Web = Web()
    telemetry: TelemetrySection = TelemetrySection()
    retention: RetentionSection = RetentionSection()

    _file: Path | None = PrivateAttr(default=None)

    @property
    def file(self) -> Path | None:
        """The file that was read; None where there is none."""
        return self._file

    def read_from(self, file: Path | None) -> Self:
        self._file = file
        return self

    def missing(self, key: str, remedy: str) -> ConfigError:
        """The error for a key without which something cannot be done: names file, key and remedy."""
        where = str(self._file) if self._file else "no configuration file"
        return ConfigError(f"{where}: {key}: missing. {remedy}")


def find_file(named: Path | None = None) -> Path | None:
    """The configuration file: --config, MERK_CONFIG, ./config.toml, ~/.config/merk/config.toml; None = no file."""
    if named is None and (variable := os.environ.get("MERK_CONFIG")):
        named = Path(variable).expanduser()
    if named is not None:
        if named.is_dir():
            raise ConfigError(f"{named}: is a folder. Name the file in it with --config or MERK_CONFIG.")
        if not named.exists():
            raise ConfigError(f"{named}: there is no such file. Name another with --config, or run `merk init`.")
        return named
    return next((path for path in (Path("config.toml"), home_file()) if path.is_file()), None)


def home_file() -> Path:
    """Where a person's own configuration is."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "merk" / "config.toml"


def load(named: Path | None = None) -> Settings:
    """Read the settings. Raises `ConfigError`."""
    file = find_file(named)
    values = _read(file) if file else {}
    variables = _from_environment()
    for keys, value in variables.items():
        _put(values, keys, value)
    if key := os.environ.get("ANTHROPIC_API_KEY", "").strip():
        _put_default(values, ("model", "anthropic", "api_key"), key)
    try:
        return Settings.model_validate(values).read_from(file)
    except ValidationError as error:
        raise ConfigError(_explain(error, file, variables)) from None  # its text could quote a secret


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML ({error}). {_COMPARE}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 (byte {error.start}). Save it as UTF-8.") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}). Check its owner and mode.") from error


def _from_environment() -> dict[tuple[str, ...], str]:
    """Keys -> value of every variable that is a setting. An empty one counts as not set."""
    found: dict[tuple[str, ...], str] = {}
    for name, value in os.environ.items():
        if not name.startswith(_PREFIX) or not value:
            continue
        key = name.removeprefix(_PREFIX).lower()
        if "__" in key:
            found[tuple(key.split("__"))] = value
        elif section := next((each for each in Settings.model_fields if key.startswith(f"{each}_")), None):
            meant = _variable((section, key.removeprefix(f"{section}_")))
            raise ConfigError(f"environment, {name}: unknown key. Two underscores follow the section: {meant}.")
    return found


def _variable(keys: tuple[str, ...]) -> str:
    return _PREFIX + "__".join(keys).upper()


def _put(values: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    """Set a value in nested tables. Where a key is no table, what is there stays: validation names it."""
    table = values
    for key in keys[:-1]:
        inner: object = table.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        table = cast("dict[str, Any]", inner)
    table[keys[-1]] = value


def _put_default(values: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    table: Any = values
    for key in keys:
        table = cast("dict[str, Any]", table).get(key) if isinstance(table, dict) else None
    if table is None:
        _put(values, keys, value)


def _explain(error: ValidationError, file: Path | None, variables: dict[tuple[str, ...], str]) -> str:
    lines: list[str] = []
    for problem in error.errors(include_url=False, include_input=False):
        loc = tuple(str(part) for part in problem["loc"])
        variable = next((keys for keys in variables if loc[: len(keys)] == keys), None)
        where = f"environment, {_variable(variable)}" if variable else str(file or "environment")
        lines.append(f"{where}: {'.'.join(loc) or 'the file'}: {_said(problem['type'], problem['msg'])}")
    return "\n".join(lines)


def _said(kind: str, message: str) -> str:
    """What is wrong with a value, and what to do."""
    if kind == "extra_forbidden":
        return f"unknown key. {_COMPARE} Or delete it."
    if kind == "model_type":
        return f"must be a section with keys of its own. {_COMPARE}"
    if kind == "value_error":
        return message.removeprefix("Value error, ") + "."
    return f"{message}. {_COMPARE}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _address(value: str | None) -> str | None:
    if value is not None and not re.match(r"^https?://[^\s/]+", value):
        raise ValueError("must be an address that begins with http:// or https://")
    return value
