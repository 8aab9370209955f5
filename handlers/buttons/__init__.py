"""What a tap does: one file a topic, every action listed once. An action is part of stored buttons: never reuse one."""

from collections.abc import Mapping

from handlers.buttons import answers, chats, facts, forgetting, people
from handlers.turn import Turn
from handlers.types import Handler
from memory.memory import Memory
from memory.ports import Clock
from memory.storage.database import Database


def buttons(database: Database, clock: Clock, memory: Memory, turn: Turn) -> Mapping[str, Handler]:
    return {
        "keep_fact": facts.keep(memory),
        "undo_fact": facts.undo(memory),
        "edit_fact": facts.edit(database, clock),
        "settle_fact": facts.settle(memory),
        "open_fact": facts.open(memory),
        "memory_page": facts.page(memory),
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
        "answer_again": answers.answer_again(database, turn),
        "show_answer": answers.show(database),
        "speak": people.speak(database),
        "approve": people.approve(database, clock),
        "decline": people.decline(database, clock),
    }


__all__ = ["buttons"]
