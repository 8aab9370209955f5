"""The few sentences of the terminal itself, in the languages of the catalogues."""

from dataclasses import dataclass

from handlers.locales import nearest


@dataclass(frozen=True, slots=True)
class Words:
    leave: str
    waits: str
    wiped: str
    no_button: str
    """With `{n}`."""
    bad_object: str
    not_stored: str


_WORDS = {
    "en": Words(
        leave="Ctrl-D leaves.",
        waits="waits",
        wiped="What was forgotten may still stand above; clear the window to be rid of it.",
        no_button="There is no button {n} to press.",
        bad_object='An object must be {"text": "…"} or {"press": 1}.',
        not_stored="I cannot store that at the moment; I keep trying.",
    ),
    "de": Words(
        leave="Strg-D beendet das Gespräch.",
        waits="wartet",
        wiped="Das Vergessene kann oben noch stehen; wer das Fenster leert, ist es los.",
        no_button="Es gibt keinen Knopf {n}.",
        bad_object='Ein Objekt muss {"text": "…"} oder {"press": 1} sein.',
        not_stored="Das kann ich gerade nicht speichern; ich versuche es weiter.",
    ),
    "ru": Words(
        leave="Чтобы выйти, нажмите Ctrl-D.",
        waits="ждёт",
        wiped="Забытое ещё может быть видно выше; очистите окно, чтобы оно исчезло.",
        no_button="Кнопки {n} нет.",
        bad_object='Объект должен быть {"text": "…"} или {"press": 1}.',
        not_stored="Сейчас не получается это сохранить; пробую снова.",
    ),
}


def words(language: str) -> Words:
    """The sentences nearest to a BCP 47 tag."""
    return _WORDS[nearest(language)]
