"""/language: in which language Merk's own texts are."""

from handlers.locales import LANGUAGES, phrases
from handlers.types import Button, Card, Command, Reply, Request


def command() -> Command:
    async def handle(request: Request) -> Reply:
        names = tuple(
            Button(phrases(language)("language-name"), "speak", {"language": language}) for language in LANGUAGES
        )
        client = Button(request.say("language-client"), "speak", {"language": None})
        yield Card(request.say("language-ask"), (names, (client,)))

    return Command("language", handle)
