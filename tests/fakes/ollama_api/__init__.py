"""A scripted stand-in for an Ollama server. It cuts long prompts silently, as the real one does, and records it."""

from tests.fakes.ollama_api.records import OllamaFault, OllamaModel, OllamaRequest
from tests.fakes.ollama_api.server import OllamaApi
from tests.fakes.ollama_api.vectors import embed_words

__all__ = ["OllamaApi", "OllamaFault", "OllamaModel", "OllamaRequest", "embed_words"]
