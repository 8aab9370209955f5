"""Settings: the file, the environment over it, and an error that names where, which key and what to do."""

import os
from pathlib import Path

import pytest

from bot import cli
from bot.config import ConfigError, find_file, load

TOKEN = "123456:ABC-DEF"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment and a folder that set nothing."""
    for name in list(os.environ):
        if name.startswith(("MERK_", "ANTHROPIC_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def refusal(file: Path | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "key", "remedy"),
    [
        ('[telegram]\ntokn = "x"', "telegram.tokn", "unknown key. Compare with config.example.toml"),
        ("[telgram]\n", "telgram", "unknown key"),
        ('[model.anthropic]\nkey = "x"', "model.anthropic.key", "unknown key"),
        ("telegram = 3", "telegram", "must be a section"),
        ('[memory]\nwindow = "twelve"', "memory.window", "valid integer"),
        ("[memory]\nwindow = 1", "memory.window", "greater than or equal to 2"),
        ("[memory]\nwindow = 30", "memory", "window_max must not be smaller than window"),
        ('[model]\nprovider = "openai"', "model.provider", "'auto', 'anthropic', 'ollama' or 'builtin'"),
        ('[tenant]\ntimezone = "Berlin"', "tenant.timezone", 'IANA zone such as "Europe/Berlin"'),
        ('[tenant]\nlanguage = "fr"', "tenant.language", "'en', 'de' or 'ru'"),
        ('[access]\nowners = ["ada"]', "access.owners", 'must look like "telegram:42"'),
        ("[access]\nowners = 42", "access.owners", "valid tuple"),
        ('[telegram]\ntoken = "secret-word"', "telegram.token", "must look like 123456:ABC-DEF"),
        ('[telegram]\ntoken = ""', "telegram.token", "@BotFather shows it"),
        ('[telegram]\nbase_url = "localhost:8081"', "telegram.base_url", "begins with http"),
        ('[matrix]\nhomeserver = "matrix.org"', "matrix.homeserver", "begins with http"),
        ('[matrix]\nuser_id = "merk"', "matrix.user_id", 'must look like "@merk:example.org"'),
        ('[matrix]\nhomeserver = "https://x.y"', "matrix", "needs user_id, and password or access_token"),
        ('[matrix]\nencryption = "maybe"', "matrix.encryption", "'required', 'optional' or 'off'"),
        ('[telegram]\nmode = "webhook"', "telegram", "needs webhook_url, beginning with https://"),
        (
            '[telegram]\nmode = "webhook"\nwebhook_url = "https://x.example/t"',
            "telegram",
            "needs webhook_secret: 1 to 256",
        ),
        ('[telegram]\nwebhook_listen = "8443"', "telegram.webhook_listen", "an address and a port"),
        ('[telegram]\nwebhook_listen = "::1:99999"', "telegram.webhook_listen", "an address and a port"),
        ('[model.anthropic]\napi_key = " "', "model.anthropic.api_key", "is empty. Fill it in, or delete the line"),
    ],
)
def test_what_is_wrong_names_file_key_and_remedy(file: Path, text: str, key: str, remedy: str) -> None:
    file.write_text(text, encoding="utf-8")
    said = refusal(file)
    assert said.startswith(f"{file}: {key}")
    assert remedy in said
    assert "secret-word" not in said


def test_everything_wrong_is_said_at_once(file: Path) -> None:
    file.write_text('[memory]\nwindow = 1\n[tenant]\nlanguage = "fr"\n[nonsense]\n', encoding="utf-8")
    assert len(refusal(file).splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[telegram\n", "not valid TOML"),
        ("# Schlüssel\n".encode("latin-1"), "not UTF-8 (byte 6). Save it as UTF-8."),
    ],
)
def test_a_file_that_is_no_toml_says_so(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)
    assert f"{file}: {said}" in refusal(file)


def test_a_folder_or_nothing_in_the_place_of_the_file_says_so(tmp_path: Path) -> None:
    assert "is a folder. Name the file in it" in refusal(tmp_path)
    assert "there is no such file. Name another with --config, or run `merk init`." in refusal(tmp_path / "none.toml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_of_somebody_else_says_so(file: Path) -> None:
    file.touch(mode=0)
    assert "cannot be read (Permission denied). Check its owner and mode." in refusal(file)


def test_a_file_holds_only_the_sections_it_needs(file: Path) -> None:
    file.write_text("\ufeff[memory]\nwindow = 6\n", encoding="utf-8")  # as Windows editors save it
    settings = load(file)
    assert (settings.memory.window, settings.memory.window_max) == (6, 24)
    assert settings.telegram.token is None
    assert settings.file == file


# --- the environment -----------------------------------------------------------------------------


def test_the_environment_wins_over_the_file_key_by_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(f'[telegram]\ntoken = "{TOKEN}"\nmode = "polling"\n[model.ollama]\nchat = "a"\n', encoding="utf-8")
    monkeypatch.setenv("MERK_TELEGRAM__TOKEN", "99:from-environment")
    monkeypatch.setenv("MERK_MODEL__OLLAMA__NUM_CTX", "4096")
    monkeypatch.setenv("MERK_TENANT__NAME", "")  # as compose files pass on what is not set
    settings = load(file)
    assert settings.telegram.token is not None
    assert settings.telegram.token.get_secret_value() == "99:from-environment"
    assert (settings.model.ollama.chat, settings.model.ollama.num_ctx) == ("a", 4096)
    assert settings.tenant.name == "Merk"


@pytest.mark.parametrize("value", ['["telegram:1", "telegram:2"]', "telegram:1, telegram:2", "telegram:1,telegram:2,"])
def test_a_list_in_a_variable_is_json_or_words_with_commas(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERK_ACCESS__OWNERS", value)
    assert load().access.owners == ("telegram:1", "telegram:2")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MERK_TELEGRAM__TOKN", "x", "environment, MERK_TELEGRAM__TOKN: telegram.tokn: unknown key"),
        ("MERK_NONSENSE__KEY", "x", "environment: nonsense: unknown key"),
        ("MERK_TELEGRAM_TOKEN", "x", "MERK_TELEGRAM_TOKEN: unknown key. Two underscores follow the section: MERK_TEL"),
        ("MERK_MEMORY__WINDOW", "many", "environment, MERK_MEMORY__WINDOW: memory.window: Input should be a valid int"),
        ("MERK_ACCESS__OWNERS", "ada", "environment, MERK_ACCESS__OWNERS: access.owners: 'ada' must look like"),
        ("MERK_ACCESS__OWNERS", "[telegram:1", 'access.owners: must be a list such as ["telegram:42"]'),
        ("MERK_TENANT__TIMEZONE", "Mars/Base", "environment, MERK_TENANT__TIMEZONE: tenant.timezone: must be an IANA"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert said in refusal()


def test_variables_of_other_programs_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERK_LOG", "INFO")
    monkeypatch.setenv("MERK_BOT_API_SPEC", "somewhere")
    assert load().tenant.name == "Merk"


def test_the_key_of_anthropics_own_variable_is_taken_last(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-environment")
    key = load().model.anthropic.api_key
    assert key is not None
    assert key.get_secret_value() == "from-environment"
    file.write_text('[model.anthropic]\napi_key = "from-file"\n', encoding="utf-8")
    key = load(file).model.anthropic.api_key
    assert key is not None
    assert key.get_secret_value() == "from-file"


# --- which file ----------------------------------------------------------------------------------


def test_the_first_file_that_is_there_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_file() is None
    home = tmp_path / "home" / ".config" / "merk" / "config.toml"
    named, given = tmp_path / "named.toml", tmp_path / "given.toml"
    for path in (home, named, given):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_file() == home
    Path("config.toml").touch()
    assert find_file() == Path("config.toml")
    monkeypatch.setenv("MERK_CONFIG", str(named))
    assert find_file() == named
    assert find_file(given) == given
    monkeypatch.setenv("MERK_CONFIG", str(tmp_path / "gone.toml"))
    assert "gone.toml: there is no such file" in refusal()


def test_a_missing_secret_names_the_file_the_key_and_the_remedy(file: Path) -> None:
    file.touch()
    said = str(load(file).missing("telegram.token", "Run `merk init`."))
    assert said == f"{file}: telegram.token: missing. Run `merk init`."
    assert str(load().missing("telegram.token", "")).startswith("no configuration file: telegram.token")


@pytest.mark.parametrize("command", ["chat", "doctor", "reindex"])
def test_the_command_line_ends_with_2(
    command: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("[memory]\nwindowx = 3\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["merk", command, "--config", str(file)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = "".join(capsys.readouterr())
    assert f"{file}: memory.windowx: unknown key" in said
    assert "Traceback" not in said


def test_a_level_that_is_none_is_a_matter_of_configuration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MERK_LOG", "loud")
    monkeypatch.setattr("sys.argv", ["merk", "doctor"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "MERK_LOG: LOUD is no level. Use DEBUG, INFO, WARNING or ERROR." in capsys.readouterr().err
