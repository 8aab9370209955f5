"""What must answer: embedder, model, Telegram, and the clock of the machine."""

import asyncio
import time
from datetime import datetime
from pathlib import Path

from bot.admin.servers import ANTHROPIC, TELEGRAM, ServerError, find_claude, get_me, seconds_apart
from bot.checks import Wrong
from bot.checks.data import STALE_SECONDS, kept
from bot.config import ConfigError, Settings
from bot.lock import Owner
from bot.models.ollama import installed_models
from bot.providers import NOT_FETCHED, Chosen, choose_embedder, choose_model, claude_key, takes_claude
from bot.pulse import key_of
from memory.ports import EmbedderError, ModelError, Tier

CLOCK_SECONDS = 60
RESTART = "systemctl restart merk"


async def embedder(settings: Settings, _owner: Owner | None) -> str:
    try:
        chosen = await choose_embedder(settings)
    except ConfigError as error:
        raise Wrong(str(error), f"ollama serve; ollama pull {settings.embedding.model}") from error
    try:
        await chosen.embed_query("doctor")
    except EmbedderError as error:
        raise Wrong(str(error), "scripts/setup, or pip install --force-reinstall merk") from error
    finally:
        await chosen.close()
    return f"{chosen.name}, {chosen.dimension} dimensions"


async def model(settings: Settings, owner: Owner | None) -> str:
    """Ask whether it is there; nothing is generated, nothing is downloaded, nothing costs money."""
    try:
        if takes_claude(settings):  # asked without the SDK, whose import would hold up the other checks
            return await _claude(settings, claude_key(settings))
        chosen = await choose_model(settings, lambda _done, _all: None, download=False)
    except ConfigError as error:
        raise Wrong(str(error), "merk init") from error
    try:
        if chosen.provider == "ollama":
            return await _ollama(settings, chosen)
    finally:
        await chosen.model.close()
    return _builtin(settings, chosen, owner)


async def _claude(settings: Settings, secret: str) -> str:
    section = settings.model.anthropic
    url = section.base_url or ANTHROPIC
    for key, name in {"default": section.default, "smart": section.smart, "small": section.small}.items():
        try:
            found = await find_claude(url, secret, name)
        except ServerError as error:
            raise _silent(error) from error
        if found == "refused key":
            raise Wrong("the Claude key is not accepted", "merk init")
        if found == "unknown model":
            raise Wrong(f"{url} has no model {name}", f"set model.anthropic.{key} to one that it has")
    return f"Claude: {section.default}, and {section.small} in the background"


async def _ollama(settings: Settings, chosen: Chosen) -> str:
    said, section = chosen.said.removeprefix("Model: "), settings.model.ollama
    try:
        for tier, name in ((Tier.DEFAULT, section.chat), (Tier.SMART, section.smart), (Tier.SMALL, section.small)):
            answers = (await chosen.model.traits(tier)).name
            if name is not None and answers != name:
                raise Wrong(f"{said} {name} is not there, {answers} answers instead", await _ollama_remedy(settings))
    except ModelError as error:
        remedy = await _ollama_remedy(settings)
        raise Wrong(f"{said} It does not answer ({error.failure}: {error.detail})", remedy) from error
    return said


async def _ollama_remedy(settings: Settings) -> str:
    section = settings.model.ollama
    try:
        installed = await installed_models(section.host)
    except (ModelError, ValueError):
        return "ollama serve"
    there = {name for each in installed for name in (each, each.removesuffix(":latest"))}
    named = dict.fromkeys((section.chat, section.smart, section.small))
    wanted = [name for name in named if name and name not in there]
    return "; ".join(f"ollama pull {name}" for name in wanted) or "ollama serve"


def _builtin(settings: Settings, chosen: Chosen, owner: Owner | None) -> str:
    path = settings.model.builtin.path
    if path is not None and not _is_gguf(path):
        raise Wrong(f"{path} is not a GGUF file", "set model.builtin.path to one, or delete the key")
    if chosen.provider == "none" and owner is not None:  # its start should have fetched it
        raise Wrong(NOT_FETCHED, f"df -h {settings.tenant.data_dir}; check the network; then {RESTART}")
    return chosen.said.removeprefix("Model: ").removeprefix("No model: ")


def _is_gguf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


async def telegram(settings: Settings, owner: Owner | None) -> str:
    section = settings.telegram
    if section.token is None:
        return "not set up (merk init)"
    try:
        me = await get_me(section.base_url or TELEGRAM, section.token.get_secret_value())
    except ServerError as error:
        raise _silent(error) from error
    if me is None:
        raise Wrong("the token is not accepted", "merk init")
    name = f"@{me['username']}"
    if owner is None or not owner.serves:
        return f"{name}; Merk is not running (merk run)"
    return f"{name}, {await asyncio.to_thread(_pulse, settings, owner, name)}"


def _pulse(settings: Settings, owner: Owner, name: str) -> str:
    """What the running process has noted of its contact with Telegram."""
    noted, noted_at = kept(settings, key_of("telegram"))
    if noted_at < owner.since:  # by the process before this one
        noted, noted_at = {}, owner.since
    if time.time() - noted_at > STALE_SECONDS:
        raise Wrong(f"{name}: {owner.said} hangs", RESTART)
    if noted.get("problem"):
        raise Wrong(f"{name}: {noted['problem']}", "journalctl -u merk")
    heard_at = noted.get("at")
    if time.time() - (heard_at or owner.since) > STALE_SECONDS:
        raise Wrong(f"{name}: nothing heard for {(time.time() - (heard_at or owner.since)) / 60:.0f} minutes", RESTART)
    return f"heard {max(time.time() - heard_at, 0):.0f} s ago" if heard_at else "starting"


def _silent(error: ServerError) -> Wrong:
    return Wrong(str(error), f"curl -sSI {error.url}")


async def clock(settings: Settings, _owner: Owner | None) -> str:
    """Compare with a server that we talk to anyway."""
    urls = [settings.telegram.base_url or TELEGRAM] if settings.telegram.token else []
    if settings.model.anthropic.api_key:
        urls.append(settings.model.anthropic.base_url or ANTHROPIC)
    for url in urls:
        apart = await seconds_apart(url)
        if apart is not None:
            if apart > CLOCK_SECONDS:
                raise Wrong(f"{apart:.0f} s apart from {url}", "timedatectl set-ntp true")
            return f"within {CLOCK_SECONDS} s of {url}"
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z} (nothing to compare with)"
