"""What a turn came to, as events: ids and figures. Pure."""

from typing import Any

from handlers.answering.rounds import Answer
from handlers.types import Happened, Request
from memory.ports import StopReason
from memory.telemetry import Event, ModelMissing, PtlRecovery, ToolUsed, TurnCompleted, TurnFailed, code
from memory.types import Recall


def account(request: Request, answer: Answer, recall: Recall, duration_ms: int) -> list[Happened]:
    """The events of a turn that is over, to be stored with its answer."""
    who = {"user_id": request.user.id, "session_id": request.session.id}
    found: list[Event] = [
        ToolUsed(**who, tool_name=each.tool, duration_ms=each.duration_ms, success=each.success)
        for each in answer.made.used
    ]
    if answer.shortened:
        found.append(PtlRecovery(**who, attempts=answer.shortened, success=answer.failure is None))
    if answer.failure is not None:
        found.append(TurnFailed(**who, failure=answer.failed or "unknown"))
    if answer.missing:
        found.append(ModelMissing(**who, model=code(answer.missing), instead=code(answer.model)))
    if answer.usage or answer.text or answer.was_stopped:
        found.append(_completed(request, answer, recall, duration_ms))
    if answer.talk is not None and answer.usage:
        broken = answer.talk.cache_break(answer.usage[0], answer.cache_miss)
        found += [broken] if broken is not None else []
    return [Happened(event) for event in found]


def _completed(request: Request, answer: Answer, recall: Recall, duration_ms: int) -> TurnCompleted:
    def total(key: str) -> int:
        return sum(each.get(key, 0) for each in answer.usage)

    return TurnCompleted(
        user_id=request.user.id,
        session_id=request.session.id,
        model=code(answer.model),
        outcome=_outcome(answer),
        tokens_in=total("input"),
        tokens_out=total("output"),
        tokens_cache_read=total("cache_read"),
        tokens_cache_write=total("cache_write"),
        cost_nano_usd=answer.nano_usd,
        duration_ms=duration_ms,
        first_token_ms=answer.first_token_ms,
        recall_hits=len(recall.recollections),
        tool_calls=len(answer.made.used),
        inbox_id=request.incoming.inbox_ids[0],
    )


def _outcome(answer: Answer) -> Any:
    if answer.failure is not None:
        return "broken"
    if answer.was_stopped:
        return "stopped"
    by_stop = {StopReason.REFUSED: "refused", StopReason.LENGTH: "cut"}
    return by_stop.get(answer.stop, "answered")
