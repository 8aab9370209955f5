"""The Bot API emulator's wire: updates, webhook, faults, floods, the schema, a process of its own, and its picture.

One rule: what goes wrong here goes wrong as it does with the real server, and only when asked for.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from aiohttp import web
from telegram import Bot, Update
from telegram.error import BadRequest, Conflict, Forbidden, NetworkError, RetryAfter, TimedOut
from telegram.ext import Application, ApplicationBuilder, CallbackQueryHandler, ContextTypes, MessageHandler, filters

from tests.e2e.bot_api_stage import ADA, BOB, FORUM, GROUP, impatient_bot, keyboard, peopled_api, raw_call, refused
from tests.fakes.bot_api import BotApi, FaultKind, render_svg
from tests.fakes.bot_api.errors import refuse
from tests.fakes.bot_api.methods import HANDLERS
from tests.fakes.bot_api.schema_file import find_schema_file, load_schema
from tests.fakes.bot_api.spec import Field, Fields
from tests.fakes.bot_api.table import TABLE

ROOT = Path(__file__).parents[2]
SVG_TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with peopled_api() as emulator:
        yield emulator


@pytest.fixture
async def bot(api: BotApi) -> AsyncIterator[Bot]:
    async with impatient_bot(api) as client:
        yield client


async def test_updates_wait_until_an_offset_confirms_them(api: BotApi, bot: Bot) -> None:
    for text in ("one", "two", "three"):
        api.say(ADA, text)
    first = (await bot.get_updates(limit=1))[0]
    assert len(await bot.get_updates(first.update_id)) == 3
    assert len(await bot.get_updates(first.update_id + 1)) == 2
    assert [update.message.text for update in await bot.get_updates(-1) if update.message] == ["three"]


async def test_a_second_poller_ends_the_older_poll(api: BotApi, bot: Bot) -> None:
    older = asyncio.create_task(bot.get_updates(timeout=5))
    await api.wait_for(lambda: api.world.feed.polls == 1)
    newer = asyncio.create_task(bot.get_updates(timeout=5))
    await refused(Conflict, "terminated by other getUpdates request; make sure that only one bot", older)
    api.say(ADA, "hello")
    assert len(await newer) == 1


async def test_a_poller_that_died_loses_nothing(api: BotApi, bot: Bot) -> None:
    dead = asyncio.create_task(bot.get_updates(timeout=5))
    await api.wait_for(lambda: api.world.feed.polls == 1)
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)
    api.say(ADA, "hello")
    assert [update.message.text for update in await bot.get_updates() if update.message] == ["hello"]


async def test_a_webhook_gets_updates_with_its_secret_until_it_accepts_them(api: BotApi, bot: Bot) -> None:
    seen: list[tuple[str, str | None]] = []

    async def receive(request: web.Request) -> web.Response:
        update = await request.json()
        seen.append((update["message"]["text"], request.headers.get("X-Telegram-Bot-Api-Secret-Token")))
        return web.Response(status=500 if len(seen) < 3 else 200)

    application = web.Application()
    application.router.add_post("/hook", receive)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    waiting = asyncio.create_task(bot.get_updates(timeout=5))
    await api.wait_for(lambda: api.world.feed.polls == 1)
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    await bot.set_webhook(url, secret_token="s3cret", allowed_updates=["message"])
    await refused(Conflict, "terminated by setWebhook request", waiting)
    api.say(ADA, "one")
    api.edit(ADA, api.say(ADA, "two").id, "not asked for")
    await api.wait_for(lambda: not api.pending())
    assert seen == [("one", "s3cret")] * 3 + [("two", "s3cret")]
    assert "500" in ((await bot.get_webhook_info()).last_error_message or "")
    await refused(Conflict, "can't use getUpdates method while webhook is active", bot.get_updates())
    await bot.delete_webhook()
    await bot.get_updates()
    await runner.cleanup()


@pytest.mark.parametrize(
    ("kind", "error", "text", "delivered"),
    [
        ("500", NetworkError, "internal server error", False),
        ("502", NetworkError, "bad gateway", False),
        ("parse", BadRequest, "can't parse entities", False),
        ("thread_not_found", BadRequest, "message thread not found", False),
        ("blocked", Forbidden, "bot was blocked by the user", False),
        ("not_modified", BadRequest, "message is not modified", False),
        ("custom", BadRequest, "emulated failure", False),
        ("reset", NetworkError, "", False),
        ("reset_after", NetworkError, "", True),
        ("timeout_after", TimedOut, "", True),
    ],
)
async def test_a_fault_strikes_once_and_says_whether_the_message_arrived(
    api: BotApi, bot: Bot, kind: FaultKind, error: type[Exception], text: str, delivered: bool
) -> None:
    fault = api.fail(kind, "sendmessage", skip=1, pattern="struck", seconds=1)
    await bot.send_message(ADA, "struck, but skipped")
    await bot.send_chat_action(ADA, "typing")
    await refused(error, text, bot.send_message(ADA, "struck"))
    await bot.send_message(ADA, "later")
    assert api.answers(ADA) == ["struck, but skipped", *(["struck"] if delivered else []), "later"]
    assert fault.hits == 1
    assert {call.fault for call in api.calls("sendMessage")} == {None, kind}


async def test_a_held_request_goes_on_when_released(api: BotApi, bot: Bot) -> None:
    fault = api.fail("hold", "sendMessage")
    slow = asyncio.create_task(bot.send_message(ADA, "slow"))
    await api.wait_for(lambda: fault.hits)
    await bot.send_message(ADA, "fast")
    fault.release()
    await slow
    assert api.answers(ADA) == ["fast", "slow"]


async def test_a_call_before_retry_after_is_over_is_a_violation(
    api: BotApi, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")  # without it the library warns at every RetryAfter
    api.fail("429", "sendMessage", retry_after=1)
    with pytest.raises(RetryAfter) as told:
        await bot.send_message(ADA, "x")
    assert told.value.retry_after == timedelta(seconds=1)
    await bot.send_message(GROUP, "another chat is free")
    await refused(RetryAfter, "", bot.send_chat_action(ADA, "typing"))
    assert [(violation.kind, violation.method) for violation in api.violations] == [("flood", "sendChatAction")]
    await asyncio.sleep(1.05)
    await bot.send_message(ADA, "obeyed")
    api.limit_rate(2, 60)
    for _ in range(2):
        await bot.send_message(GROUP, "fits")
    await refused(RetryAfter, "0:01:00", bot.send_message(GROUP, "does not fit"))
    assert len(api.violations) == 1


FORBIDDEN: list[tuple[int, str, str, dict[str, Any]]] = [
    (400, "schema", "sendMessage", {"chat_id": ADA, "text": "x", "colour": 1}),
    (400, "schema", "sendMessage", {"chat_id": ADA, "text": 5}),
    (400, "schema", "sendMessage", {"text": "x"}),
    (400, "schema", "sendMessage", {"chat_id": ADA, "text": "x", "reply_markup": {"inline_keyboard": [{}]}}),
    (400, "schema", "setMessageReaction", {"chat_id": ADA, "message_id": 1, "reaction": [{"type": "smile"}]}),
    (400, "limit", "sendMessage", {"chat_id": ADA, "text": "x" * 5000}),
    (400, "limit", "createForumTopic", {"chat_id": FORUM, "name": ""}),
    (501, "not-implemented", "sendMessage", {"chat_id": ADA, "text": "x", "message_effect_id": "1"}),
    (501, "not-implemented", "sendPhoto", {"chat_id": ADA, "photo": "https://x.org/a.png"}),
    (501, "not-implemented", "sendPoll", {"chat_id": ADA}),
    (404, "unknown-method", "sendLetter", {}),
]


@pytest.mark.parametrize("with_schema_file", [True, False])
async def test_what_the_schema_forbids_is_refused_and_noted(api: BotApi, with_schema_file: bool) -> None:
    if not with_schema_file:
        api.ignore_schema_file()
    for status, kind, method, params in FORBIDDEN:
        api.clear_violations()
        answer = await raw_call(api, method, json=params)
        assert (answer["ok"], answer["error_code"]) == (False, status), answer
        assert {violation.kind for violation in api.violations} == {kind}, params
    bare = json.dumps({"inline_keyboard": [[{"text": "Go"}]]})
    answer = await raw_call(api, "SENDmessage", data={"chat_id": ADA, "text": "x", "reply_markup": bare})
    assert "can't parse inline keyboard button: Text buttons are unallowed in the" in answer["description"]
    assert api.messages(ADA) == []


async def test_the_token_is_checked_and_a_logged_out_bot_is_refused(api: BotApi, bot: Bot) -> None:
    assert (await raw_call(api, "getMe", token="nonsense"))["description"] == "Unauthorized: invalid token specified"
    assert (await raw_call(api, "getMe", token="1:other"))["error_code"] == 401
    assert await bot.log_out()
    await refused(BadRequest, "logged out", bot.get_me())


async def test_a_whole_application_polls_without_a_violation(api: BotApi) -> None:
    async def echo(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        if update.callback_query is not None:
            await update.callback_query.answer("ok")
            await update.callback_query.edit_message_text("pressed")
        elif update.effective_message is not None:
            said = update.effective_message
            await said.reply_text(f"echo {said.text}", reply_markup=keyboard("y"))

    builder = ApplicationBuilder().token(api.token).base_url(f"{api.base_url}/bot")
    application: Application[Any, Any, Any, Any, Any, Any] = builder.build()
    application.add_handlers([CallbackQueryHandler(echo), MessageHandler(filters.TEXT, echo)])
    thread = api.topic(FORUM, "Trip")
    async with application:
        await application.start()
        assert application.updater is not None
        await application.updater.start_polling(timeout=5, allowed_updates=Update.ALL_TYPES)
        api.say(ADA, "hello")
        api.say(FORUM, "there", thread=thread, user=BOB)
        answer = await api.wait_text(ADA, "^echo hello$")
        assert (await api.wait_text(FORUM, "echo there")).thread == thread
        press = api.press(ADA, answer.id, "y")
        await api.wait_text(ADA, "pressed")
        assert press.answers == [{"text": "ok"}]
        assert api.poll_age() < 5
        await application.updater.stop()
        await application.stop()
    assert api.pending() == []
    assert api.violations == []


async def test_waiting_in_vain_tells_what_happened(api: BotApi, bot: Bot) -> None:
    await refused(BadRequest, "empty", bot.send_message(ADA, ""))
    api.say(ADA, "anybody?")
    with pytest.raises(TimeoutError, match=r"anybody\?.*message text is empty"):
        await api.wait_text(ADA, "yes", timeout=0.05)
    assert [len(part.text) for part in api.paste(ADA, "x" * 5000)] == [4096, 904]


async def _start_process(state: Path) -> tuple[asyncio.subprocess.Process, str]:
    command = (sys.executable, "-m", "tests.fakes.bot_api", "--state", str(state))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    return process, (await process.stdout.readline()).decode().strip()


async def _operate(client: httpx.AsyncClient, operation: str, **arguments: Any) -> Any:
    answer = (await client.post(f"/emu/{operation}", json=arguments)).json()
    return answer.get("result", answer.get("error"))


async def test_a_process_of_its_own_survives_a_kill_with_its_state(tmp_path: Path) -> None:
    process, url = await _start_process(tmp_path / "state")
    async with httpx.AsyncClient(base_url=url) as client:
        assert await _operate(client, "private_chat", user_id=ADA, first_name="Ada") == ADA
        await _operate(client, "say", chat=ADA, text="hello")
        assert "missing a required argument" in await _operate(client, "say", chat=ADA)
        assert "there are" in await _operate(client, "sing")
    process.send_signal(signal.SIGKILL)
    await process.wait()
    process, url = await _start_process(tmp_path / "state")
    async with httpx.AsyncClient(base_url=url) as client, Bot("4242:emulated-token", f"{url}/bot") as bot:
        updates = await bot.get_updates()
        assert [update.message.text for update in updates if update.message] == ["hello"]
        await bot.send_message(ADA, "hi", reply_markup=keyboard("y"))
        shown = await _operate(client, "wait_text", chat=ADA, pattern="hi")
        assert (shown["text"], shown["labels"]) == ("hi", ["Button y"])
        assert (await _operate(client, "fail", kind="blocked"))["hits"] == 0
        await refused(Forbidden, "blocked", bot.send_message(ADA, "x"))
        assert await _operate(client, "violations") == []
        assert (await _operate(client, "render", chat_id=ADA)).startswith("<svg")
    process.terminate()
    assert await process.wait() == 0


async def test_a_chat_is_drawn_as_one_svg_without_anything_external(api: BotApi, bot: Bot) -> None:
    api.say(ADA, "Where did we stay? " * 9)
    html = "<b>Lisbon</b> &amp; <a href='https://x.org/?a=1&amp;b=2'>Porto</a>\n<pre>x &lt; 1</pre>"
    await bot.send_message(ADA, html, "HTML", reply_markup=keyboard("more"))
    drawing = render_svg(api, ADA, title="Merk <3", width=360)
    texts = ["".join(node.itertext()) for node in ET.fromstring(drawing).iter(SVG_TEXT)]
    assert {"Merk <3", "Lisbon & Porto", "x < 1", "Button more"} <= set(texts)
    assert sum("Where did we stay?" in text for text in texts) > 1  # wrapped
    assert "href" not in drawing
    assert "font-face" not in drawing


@pytest.mark.parametrize(
    ("message", "code", "description"),
    [
        ("Message text is empty", 400, "Bad Request: message text is empty"),
        ("BUTTON_DATA_INVALID", 400, "Bad Request: BUTTON_DATA_INVALID"),
        ("USER_IS_BLOCKED", 403, "Bad Request: USER_IS_BLOCKED"),
        ("Bot was blocked by the user", 403, "Forbidden: bot was blocked by the user"),
    ],
)
def test_the_wording_rule(message: str, code: int, description: str) -> None:
    error = refuse(message, code)
    assert error.description == description
    assert error.code == (400 if description.startswith("Bad") else 403)


def _comparable(fields: Fields) -> Fields:
    """What the schema file can know: not what the emulator builds, nor how long a list may be."""

    def bare(known: Field) -> Field:
        same = replace(known, built=True, types=tuple(sorted(known.types)))
        return replace(same, low=None, high=None, unit=None) if known.unit == "items" else same

    return {name: bare(known) for name, known in fields.items()}


def test_the_table_is_complete_and_agrees_with_the_schema_file() -> None:
    assert HANDLERS.keys() == TABLE.methods.keys()
    path = find_schema_file()
    if path is None:
        pytest.skip("no schema file beside the checkout; name one in MERK_BOT_API_SPEC")
    schema = load_schema(path)
    for name, method in TABLE.methods.items():
        theirs = schema.methods[name]
        assert set(method.returns) == set(theirs.returns), name
        assert _comparable(method.fields) == _comparable(theirs.fields), name
    for name, shape in TABLE.objects.items():
        assert shape == schema.objects[name], name


def test_a_named_schema_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERK_BOT_API_SPEC", f"{os.devnull}.json")
    with pytest.raises(FileNotFoundError, match="unset it"):
        find_schema_file()
