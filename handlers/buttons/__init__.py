"""What a tap does: one file a topic, every action listed once. An action is part of stored buttons: never reuse one."""

from collections.abc import Mapping, Sequence

from handlers.answering.calls import Tool
from handlers.answering.spending import Spending
from handlers.buttons import (
    answers,
    approvals,
    chats,
    closing,
    draft,
    facts,
    forgetting,
    history,
    instructions,
    linking,
    observations,
    people,
    reminders,
)
from handlers.buttons import model as models
from handlers.buttons import spending as budgets
from handlers.remembering.remembered import Remembered
from handlers.reminding.reminders import Reminders
from handlers.turn import Turn
from handlers.types import Handler
from handlers.work.works import Works
from handlers.work.writer import Writer
from memory.memory import Memory
from memory.ports import LanguageModel


def buttons(  # noqa: PLR0913 - what they are made of
    memory: Memory,
    works: Works,
    kept: Reminders,
    tools: Sequence[Tool],
    *,
    turn: Turn,
    writer: Writer,
    model: LanguageModel,
    spending: Spending,
) -> Mapping[str, Handler]:
    """By action; `works` has the database and the clock."""
    database, clock = works.database, works.clock
    remembered = Remembered(memory, database, clock)
    by_name = {tool.spec.name: tool for tool in tools}
    return {
        "keep_fact": facts.keep(memory),
        "undo_fact": facts.undo(memory),
        "edit_fact": facts.edit(database, clock),
        "settle_fact": facts.settle(memory),
        "open_fact": facts.open(memory),
        "memory_page": facts.page(remembered),
        "ask_forget": forgetting.ask(memory),
        "forget_fact": forgetting.forget(memory),
        "leave": forgetting.leave(),
        "stop_waiting": forgetting.stop_waiting(database),
        "chats_page": chats.page(database),
        "open_chat": chats.open(database),
        "switch_chat": chats.switch(database),
        "rename_chat": chats.rename(database, clock),
        "export_chat": chats.export(database),
        "ask_delete_chat": chats.ask_delete(database),
        "delete_chat": chats.delete(database, memory),
        "answer_again": answers.answer_again(database, turn, memory),
        "show_answer": answers.show(database),
        "close_work": closing.close(works),
        "continue_work": closing.go_on(works),
        "allow_call": approvals.allow(database, works, by_name),
        "deny_call": approvals.deny(database),
        "keep_draft": draft.keep(works),
        "show_draft_changes": draft.changes(works),
        "ask_discard_draft": draft.ask_discard(works),
        "discard_draft": draft.discard(works),
        "write_draft_again": draft.write_again(writer),
        "history_page": history.page(works),
        **observations.handlers(remembered),
        **instructions.handlers(works),
        "keep_reminder": reminders.keep(kept),
        "undo_reminder": reminders.undo(kept),
        "reminders_page": reminders.page(kept),
        "open_reminder": reminders.open(kept),
        "snooze_reminder": reminders.snooze(kept),
        "finish_reminder": reminders.finish(kept),
        "ask_delete_reminder": reminders.ask_delete(kept),
        "delete_reminder": reminders.delete(kept),
        "pin_model": models.pin(database, model),
        "lift_budget": budgets.lift(spending),
        "speak": people.speak(database),
        "bring_code": linking.bring(memory.linking),
        "join_identity": linking.join(memory.linking, spending.budget),
        "decline_link": linking.decline(memory.linking),
        "ask_unlink": linking.ask(memory.linking),
        "unlink": linking.part(memory.linking, spending.budget),
        "approve": people.approve(database, clock),
        "decline": people.decline(database, clock),
    }


__all__ = ["buttons"]
