"""One chat turn: what is refused, what is cut away, what is said, and how it goes over the wire."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from aiohttp import web

from tests.fakes.messages_api.fill import Filler, gist
from tests.fakes.messages_api.rules import Reply
from tests.fakes.messages_api.stream import pieces
from tests.fakes.messages_api.wire import Json, dumps, mapping, mappings, size
from tests.fakes.ollama_api.records import BREAKS, OllamaError, OllamaFault, OllamaModel, OllamaRequest

FOR_EVER: Final = 3_600.0
ROLES: Final = ("system", "user", "assistant", "tool")
THOUGHT: Final = "Considering what was asked."
PER_MESSAGE: Final = 4  # tokens of the template around each message


def check_chat(request: OllamaRequest, model: OllamaModel) -> None:
    """Raises OllamaError 400 for what the model or the server does not take."""
    body, short = request.body, model.name.removesuffix(":latest")
    if not model.can("completion"):
        raise OllamaError(400, f'"{short}" does not support chat')
    if body.get("tools") and not model.can("tools"):
        raise OllamaError(400, f"registry.ollama.ai/library/{short} does not support tools")
    if body.get("think") and not model.can("thinking"):
        raise OllamaError(400, f'"{short}" does not support thinking')
    if any(message.get("images") for message in request.messages) and not model.can("vision"):
        raise OllamaError(400, "this model is missing data required for image input")
    for message in request.messages:
        if message.get("role") not in ROLES:
            raise OllamaError(400, f"invalid role: {message.get('role')}")
        for call in mappings(message.get("tool_calls")):
            if mapping((mapping(call.get("function")) or {}).get("arguments")) is None:
                raise OllamaError(400, "json: cannot unmarshal string into Go struct field .arguments of type map")


def misplaced_results(request: OllamaRequest) -> list[str]:
    """Tool messages that answer no call, and calls without an answer: Ollama takes both, models stumble."""
    found: list[str] = []
    open_calls = 0
    for index, message in enumerate([*request.messages, {"role": "end"}]):
        if message.get("role") == "tool":
            open_calls -= 1
            if open_calls < 0:
                found.append(f"messages.{index}: a tool message without a call before it")
            continue
        if open_calls > 0:
            found.append(f"messages.{index}: {open_calls} tool calls before it have no result")
        open_calls = len(mappings(message.get("tool_calls")))
    return found


def cut(request: OllamaRequest, context: int) -> tuple[list[Json], int]:
    """The messages that fit into the context, and the tokens of the prompt. The oldest go first, system ones never."""
    room = context - (size(dumps(request.body["tools"])) if request.body.get("tools") else 0)
    messages = request.messages
    kept = {index for index, message in enumerate(messages) if message.get("role") == "system"}
    used = sum(_weigh(messages[index]) for index in kept)
    for index in sorted(set(range(len(messages))) - kept, reverse=True):
        used += _weigh(messages[index])
        if used > room and index != len(messages) - 1:
            used -= _weigh(messages[index])
            break
        kept.add(index)
    return [messages[index] for index in sorted(kept)], min(context, used + context - room)


def _weigh(message: Json) -> int:
    calls = message.get("tool_calls")
    return PER_MESSAGE + size(str(message.get("content", "")) + (dumps(calls) if calls else ""))


def unscripted(request: OllamaRequest) -> Reply:
    """Without a rule: the schema filled, `Done.` after a tool, else an echo."""
    said = "\n".join(str(message.get("content", "")) for message in request.seen if message.get("role") != "system")
    shape = request.body.get("format")
    schema = mapping(shape)
    if schema is not None:
        return Reply(dumps(Filler(schema, said).value()))
    if shape == "json":
        return Reply(dumps({"text": gist(said)}))
    return Reply("Done." if request.tool_result is not None else f"Echo: {request.scene.user}")


def lines(request: OllamaRequest, model: OllamaModel) -> list[Json]:
    """The answer as the objects of its stream, the last one with `done`."""
    reply = request.reply or Reply()
    limit = request.options.get("num_predict", -1)
    text, reason = reply.text, "stop"
    if 0 <= limit < size(text):
        text, reason = text.encode()[: limit * 4].decode(errors="ignore"), "length"
    messages: list[Json] = []
    if model.can("thinking") and request.body.get("think") is not False:
        messages += [{"content": "", "thinking": part} for part in pieces(reply.thinking or THOUGHT)]
    messages += [{"content": part} for part in pieces(text)]
    if reply.tools:
        calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in reply.tools]
        messages.append({"content": "", "tool_calls": calls})
    head: Json = {"model": request.body["model"], "created_at": stamp()}
    told = [head | {"message": {"role": "assistant", **message}, "done": False} for message in messages]
    counts: Json = {"prompt_eval_count": request.prompt_tokens, "eval_count": size(text)}
    times = dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 1_000)
    end: Json = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason}
    return [*told, head | end | counts | times]


def whole(parts: list[Json]) -> Json:
    """The stream in one piece."""
    message: Json = {"role": "assistant", "content": "".join(part["message"]["content"] for part in parts)}
    if thought := "".join(part["message"].get("thinking", "") for part in parts):
        message["thinking"] = thought
    for part in parts:
        if "tool_calls" in part["message"]:
            message["tool_calls"] = part["message"]["tool_calls"]
    return parts[-1] | {"message": message}


async def send(request: OllamaRequest, fault: OllamaFault | None, parts: list[Json], http: web.Request) -> web.Response:
    """The answer in one piece; faults of streams in the form they have there."""
    kind = fault.kind if fault is not None else None
    if kind == "stall":
        await asyncio.sleep(FOR_EVER)
    if kind in ("disconnect", "truncate"):
        request.end = f"fault: {kind}"
        _abort(http)
        return web.Response()
    if kind == "stream_error":
        raise OllamaError(500, "an error was encountered while running the model", "fault: stream_error")
    request.end = "complete"
    return web.json_response(whole(parts))


async def stream(
    request: OllamaRequest, fault: OllamaFault | None, parts: AsyncIterable[Json], http: web.Request
) -> web.StreamResponse:
    """One JSON object a line, up to where the fault breaks it."""
    response = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
    await response.prepare(http)
    most = fault.after if fault is not None and fault.kind in BREAKS else None
    sent = 0
    async for part in parts:
        if most is not None and (sent >= most or part["done"]):
            break
        if part["done"]:
            request.end = "complete"
        await response.write(dumps(part).encode("utf-8", "surrogatepass") + b"\n")
        sent += 1
    if fault is not None and most is not None:
        if fault.kind == "stall":
            await asyncio.sleep(FOR_EVER)
        request.end = f"fault: {fault.kind}"
        if fault.kind == "stream_error":
            await response.write(b'{"error":"an error was encountered while running the model"}\n')
        if fault.kind == "disconnect":
            _abort(http)
    return response


async def one_by_one(parts: Iterable[Json]) -> AsyncGenerator[Json, None]:
    """What is there already, as what is still being made."""
    for part in parts:
        yield part


def stamp(seconds: float = 0.0) -> str:
    """Now and so many seconds, as Ollama writes times."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def _abort(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.abort()
