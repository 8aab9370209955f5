"""Language models behind `memory.ports.LanguageModel`, one module a provider."""
