"""Every figure and fixed list of the Bot API that the emulator enforces.

One rule: a number that Telegram publishes stands here, with its unit, and nowhere else.
"""

MESSAGE_CHARACTERS = 4096  # code points, after entity parsing
RAW_TEXT_BYTES = 32_768  # before parsing
CAPTION_CHARACTERS = 1024
CALLBACK_ANSWER_CHARACTERS = 200
DELETED_AT_ONCE = 100  # message ids in one deleteMessages
DELETABLE_SECONDS = 48 * 3600
DRAFT_SECONDS = 30.0
CALLBACK_SECONDS = 15.0  # the window users report for answerCallbackQuery
LONG_POLL_SECONDS = 50
UPDATES_AT_ONCE = 100
BUTTONS = 100  # in one keyboard; more is REPLY_MARKUP_TOO_LONG
COMMANDS = 100
UPLOAD_BYTES = 50 * 1024 * 1024
PHOTO_BYTES = 10 * 1024 * 1024
DOWNLOAD_BYTES = 20 * 1024 * 1024
GENERAL_TOPIC = 1
REACTIONS_OF_A_BOT = 1

COMMAND_NAME = r"[a-z0-9_]{1,32}"
LANGUAGE_CODE = r"([a-z]{2})?"
WEBHOOK_SECRET = r"[A-Za-z0-9_-]{1,256}"

TOPIC_COLOURS = frozenset({7322096, 16766590, 13338331, 9367192, 16749490, 16478047})

CHAT_ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)

UNASKED_UPDATES = frozenset({"chat_member", "message_reaction", "message_reaction_count"})  # sent only if asked for

# What `ReactionTypeEmoji` allows, without the variation selector that some clients add.
_REACTIONS = """
❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥
🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 😇 😨
🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ 😡
"""
REACTIONS = frozenset(_REACTIONS.split())


def is_reaction(emoji: str) -> bool:
    return emoji.replace("\ufe0f", "") in REACTIONS
