"""Why a prompt cache was missed, as the API says it on request: the first part that differs from the prompt before."""

from dataclasses import dataclass, field

from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.wire import Json, bare, blocks, mapping, size


@dataclass
class Diagnosis:
    """The requests so far, by the id of their answer."""

    answered: dict[str, Request] = field(default_factory=dict[str, Request])

    def add(self, request: Request, message: Json) -> None:
        """Put what is to be said into the message, where it was asked for."""
        asked = mapping(request.body.get("diagnostics"))
        if asked is not None and (before := asked.get("previous_message_id")) is not None:
            message["diagnostics"] = {"cache_miss_reason": self._reason(request, self.answered.get(str(before)))}
        self.answered[str(message["id"])] = request

    def _reason(self, request: Request, before: Request | None) -> Json | None:
        if before is None:
            return {"type": "previous_message_not_found"}
        earlier, now = _spoken(before), _spoken(request)
        changed = {
            "model_changed": before.model != request.model,
            "tools_changed": before.tools != request.tools,
            "system_changed": _plain(before) != _plain(request),
            "messages_changed": now[: len(earlier)] != earlier,
        }
        found = next((reason for reason, is_so in changed.items() if is_so), None)
        return {"type": found, "cache_missed_input_tokens": size(str(before.body))} if found is not None else None


def _plain(request: Request) -> list[Json]:
    return [bare(block) for block in blocks(request.body.get("system"))]


def _spoken(request: Request) -> list[tuple[object, list[Json]]]:
    return [(each.get("role"), [bare(block) for block in blocks(each.get("content"))]) for each in request.messages]
