"""The model itself: from a checked request to one whole message, within its budget and with its bill."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.fakes.messages_api.cache import InputUsage, PromptCache, count
from tests.fakes.messages_api.catalogue import Spec
from tests.fakes.messages_api.diagnosis import Diagnosis
from tests.fakes.messages_api.fill import Filler, gist
from tests.fakes.messages_api.rules import Call, Reply, RuleBook
from tests.fakes.messages_api.scene import Request, conversation, newest_user, tool_result
from tests.fakes.messages_api.seals import Seals, prefix
from tests.fakes.messages_api.strictness.sealed import stray_thinking
from tests.fakes.messages_api.wire import ApiError, Json, dumps, mapping, mappings, size

THOUGHT: Final = "Considering what was asked."
THINKING_TOKENS: Final = 24
COMPACT_FROM: Final = 150_000  # tokens, unless the edit names a trigger


@dataclass
class Speech:
    """A message in the making. `room` is what is left of max_tokens and of the window, in tokens."""

    room: int
    cut_reason: str
    content: list[Json] = field(default_factory=list[Json])
    spent: int = 0
    thought: int = 0
    stop_reason: str | None = None
    stop_sequence: str | None = None

    def spend(self, tokens: int) -> bool:
        """Take tokens from the room; False, and a stop, if there is not enough."""
        if tokens > self.room - self.spent:
            self.spent = self.room
            self.stop_reason = self.cut_reason
            return False
        self.spent += tokens
        return True


@dataclass
class Model:
    """Answers by the rules of `book`. `thinks`: models that can think do. `fills_lists`: see Filler."""

    book: RuleBook[Request] = field(default_factory=RuleBook[Request])
    cache: PromptCache = field(default_factory=PromptCache)
    seals: Seals = field(default_factory=Seals)
    thinks: bool = True
    fills_lists: bool = False
    diagnosis: Diagnosis = field(default_factory=Diagnosis)

    def answer(self, request: Request, spec: Spec) -> Json:
        """The whole message. Raises ApiError 400 if the prompt exceeds the window."""
        message = self._message(request, spec)
        self.diagnosis.add(request, message)
        return message

    def _message(self, request: Request, spec: Spec) -> Json:
        total = count(request)
        if total > spec.window:
            raise ApiError(400, f"prompt is too long: {total} tokens > {spec.window} maximum")
        if request.body.get("compaction") is not None:
            return self._compact(request, spec)
        edit = _due_compaction(request, total)
        if edit is not None:
            return self._compact_first(request, spec, pauses=edit.get("pause_after_compaction") is True)
        return self._speak(request, spec, self.cache.charge(request, spec))

    def _reply(self, request: Request) -> Reply:
        return self.book.take(request) or self._unscripted(request)

    def _unscripted(self, request: Request) -> Reply:
        said = conversation(request)
        if request.schema is not None:
            return Reply(dumps(Filler(request.schema, said, self.fills_lists).value()))
        if request.body.get("compaction") is not None:
            return Reply(gist(said))
        choice = mapping(request.body.get("tool_choice")) or {}
        if choice.get("type") in ("any", "tool"):
            tool = next(tool for tool in request.tools if tool["name"] == choice.get("name", tool["name"]))
            schema = mapping(tool.get("input_schema")) or {}
            return Reply(tools=((str(tool["name"]), Filler(schema, said, self.fills_lists).value()),))
        return Reply("Done." if tool_result(request) is not None else f"Echo: {newest_user(request)}")

    def _speak(self, request: Request, spec: Spec, usage: InputUsage) -> Json:
        reply = self._reply(request)
        limit, left = int(request.body["max_tokens"]), spec.window - usage.total
        speech = Speech(min(limit, left), "max_tokens" if limit <= left else "model_context_window_exceeded")
        advisor = next((tool for tool in request.tools if str(tool.get("type")).startswith("advisor_")), None)
        if limit == 0:  # only warms the cache
            speech.stop_reason = "max_tokens"
        else:
            self._think(speech, request, spec, reply)
            if reply.advice is not None and advisor is not None:
                _advise(speech, reply.advice)
            _say(speech, reply.text, [str(entry) for entry in request.body.get("stop_sequences") or ()])
            self._call(speech, reply.tools)
        stop_reason = speech.stop_reason or reply.stop_reason or ("tool_use" if reply.tools else "end_turn")
        rows = [_row("message", usage, speech.spent)]
        if reply.advice is not None and advisor is not None:
            row = _row("advisor_message", InputUsage(usage.total), size(reply.advice))
            rows.append(row | {"model": advisor["model"]})
        message = _message(request, speech.content, stop_reason, _bill(request, usage, speech.spent, rows))
        message["usage"]["output_tokens_details"] = {"thinking_tokens": speech.thought}
        message["stop_sequence"] = speech.stop_sequence
        if request.body.get("context_management") is not None:
            message["context_management"] = {"applied_edits": []}
        if dropped := stray_thinking(request, spec, self.seals):
            message["input_transformations"] = [
                {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"} for path in dropped
            ]
        return message

    def _think(self, speech: Speech, request: Request, spec: Spec, reply: Reply) -> None:
        config = mapping(request.body.get("thinking")) or {}
        kind = config.get("type", "adaptive" if "adaptive" in spec.thinking else "disabled")
        is_forced = (mapping(request.body.get("tool_choice")) or {}).get("type") in ("any", "tool")
        if not self.thinks or is_forced or kind not in ("adaptive", "enabled"):
            return
        text = (reply.thinking or THOUGHT) if config.get("display") == "summarized" else ""
        signature = self.seals.sign_thinking(text, prefix(request, request.messages))
        speech.content.append({"type": "thinking", "thinking": text, "signature": signature})
        speech.spend(max(THINKING_TOKENS, size(reply.thinking or "")))
        speech.thought = speech.spent

    def _call(self, speech: Speech, calls: Sequence[Call]) -> None:
        for name, arguments in calls:
            if speech.stop_reason is not None:
                return
            call_id = f"toolu_{secrets.token_hex(12)}"
            fits = speech.spend(size(dumps(arguments)))
            speech.content.append({"type": "tool_use", "id": call_id, "name": name, "input": arguments if fits else {}})
            if speech.content[0]["type"] == "thinking":
                self.seals.thought_calls.add(call_id)

    def _compact(self, request: Request, spec: Spec) -> Json:
        """On demand: nothing but a signed block, billed in `iterations` alone."""
        usage = self.cache.charge(request, spec)
        summary = self._reply(request).text
        block: Json = {"type": "compaction", "content": summary, "signature": self.seals.sign_compaction(summary)}
        rows = [_row("compaction", usage, size(summary))]
        return _message(request, [block], "compaction", _bill(request, InputUsage(0), 0, rows))

    def _compact_first(self, request: Request, spec: Spec, *, pauses: bool) -> Json:
        """At the threshold: a block, then (unless it pauses) the answer to what is left."""
        usage = self.cache.charge(request, spec)
        summary = gist(conversation(request))
        block: Json = {
            "type": "compaction",
            "content": summary,
            "encrypted_content": self.seals.sign_compaction(summary),
        }
        row = _row("compaction", usage, size(summary))
        if pauses:
            return _message(request, [block], "compaction", _bill(request, InputUsage(0), 0, [row]))
        rest = [{"role": "assistant", "content": [block]}, request.messages[-1]]
        left = replace(request, body=request.body | {"messages": rest})
        message = self._speak(left, spec, self.cache.charge(left, spec))
        message["content"].insert(0, block)
        message["usage"].setdefault("iterations", []).insert(0, row)
        return message


def _due_compaction(request: Request, total: int) -> Json | None:
    """The threshold compaction of this request, if its trigger is reached."""
    for edit in mappings((mapping(request.body.get("context_management")) or {}).get("edits")):
        trigger = mapping(edit.get("trigger")) or {}
        if edit.get("type") == "compact_20260112" and total >= int(trigger.get("value", COMPACT_FROM)):
            return edit
    return None


def _advise(speech: Speech, advice: str) -> None:
    call_id = f"srvtoolu_{secrets.token_hex(12)}"
    speech.spend(1)
    speech.content += [
        {"type": "server_tool_use", "id": call_id, "name": "advisor", "input": {}},
        {
            "type": "advisor_tool_result",
            "tool_use_id": call_id,
            "content": {"type": "advisor_result", "text": advice, "stop_reason": "end_turn"},
        },
    ]


def _say(speech: Speech, text: str, stop_sequences: Sequence[str]) -> None:
    if speech.stop_reason is not None or not text:
        return
    ends = [(text.index(stop), stop) for stop in stop_sequences if stop in text]
    if ends:
        end, speech.stop_sequence = min(ends)
        text = text[:end]
    room = speech.room - speech.spent
    if not speech.spend(size(text)):
        text = text.encode()[: room * 4].decode(errors="ignore")
        speech.stop_sequence = None
    elif ends:
        speech.stop_reason = "stop_sequence"
    if text:
        speech.content.append({"type": "text", "text": text})


def _row(kind: str, usage: InputUsage, output: int) -> Json:
    return {"type": kind, **usage.body(), "output_tokens": output}


def _bill(request: Request, usage: InputUsage, output: int, rows: list[Json]) -> Json:
    """The `usage` object; only beta requests are told the iterations."""
    bill: Json = {**usage.body(), "output_tokens": output, "service_tier": "standard"}
    if request.is_beta:
        bill["iterations"] = rows
    return bill


def _message(request: Request, content: list[Json], stop_reason: str, usage: Json) -> dict[str, Any]:
    message: Json = {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }
    if stop_reason == "refusal":
        message["stop_details"] = refusal_details()
    return message


def refusal_details() -> Json:
    return {"type": "refusal", "category": "general_harms", "explanation": "The request was declined."}
