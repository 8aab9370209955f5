"""The methods and request objects Merk needs, written by hand from the Bot API's public description (10.1).

One rule: a method that is not in this table does not exist for the emulator (501). Grammar: `spec.parse_field`.
"""

from .spec import parse_table

CHAT = {"chat_id": "Integer|String!"}
TOPIC = {**CHAT, "message_thread_id": "Integer!"}
BUSINESS = {"business_connection_id": "String~"}
LANGUAGE = {"language_code": "String"}
SCOPED = {"scope": "BotCommandScope", **LANGUAGE}
TARGET = {**CHAT, "message_thread_id": "Integer", "direct_messages_topic_id": "Integer~"}
DELIVERY = {
    "disable_notification": "Boolean",
    "protect_content": "Boolean",
    "allow_paid_broadcast": "Boolean~",
    "message_effect_id": "String~",
    "suggested_post_parameters": "SuggestedPostParameters~",
    "reply_parameters": "ReplyParameters",
    "reply_markup": "Markup",
}
CAPTION = {"caption": "String 0-1024 parsed", "parse_mode": "String", "caption_entities": "[MessageEntity]"}
EDITED = {
    **BUSINESS,
    "chat_id": "Integer|String",
    "message_id": "Integer",
    "inline_message_id": "String~",
    "reply_markup": "InlineKeyboardMarkup",
}
FORWARDED = {"from_chat_id": "Integer|String!", "message_id": "Integer!", "video_start_timestamp": "Integer~"}

METHODS: dict[str, tuple[str, dict[str, str]]] = {
    "getMe": ("User", {}),
    "logOut": ("Boolean", {}),
    "close": ("Boolean", {}),
    "getUpdates": (
        "[Update]",
        {"offset": "Integer", "limit": "Integer", "timeout": "Integer", "allowed_updates": "[String]"},
    ),
    "setWebhook": (
        "Boolean",
        {
            "url": "String!",
            "certificate": "InputFile~",
            "ip_address": "String~",
            "max_connections": "Integer",
            "allowed_updates": "[String]",
            "drop_pending_updates": "Boolean",
            "secret_token": "String 1-256 characters",
        },
    ),
    "deleteWebhook": ("Boolean", {"drop_pending_updates": "Boolean"}),
    "getWebhookInfo": ("WebhookInfo", {}),
    "getChat": ("ChatFullInfo", CHAT),
    "getChatMember": ("ChatMember", {**CHAT, "user_id": "Integer!"}),
    "getChatMemberCount": ("Integer", CHAT),
    "getChatAdministrators": ("[ChatMember]", {**CHAT, "return_bots": "Boolean"}),
    "leaveChat": ("Boolean", CHAT),
    "sendMessage": (
        "Message",
        {
            **BUSINESS,
            **TARGET,
            "text": "String! 1-4096 parsed",
            "parse_mode": "String",
            "entities": "[MessageEntity]",
            "link_preview_options": "LinkPreviewOptions",
            **DELIVERY,
        },
    ),
    "sendMessageDraft": (
        "Boolean",
        {
            "chat_id": "Integer!",
            "message_thread_id": "Integer",
            "draft_id": "Integer!",
            "text": "String 0-4096 parsed",
            "parse_mode": "String",
            "entities": "[MessageEntity]",
        },
    ),
    "sendChatAction": ("Boolean", {**BUSINESS, **CHAT, "message_thread_id": "Integer", "action": "String!"}),
    "sendDocument": (
        "Message",
        {
            **BUSINESS,
            **TARGET,
            "document": "InputFile|String!",
            "thumbnail": "InputFile|String~",
            **CAPTION,
            "disable_content_type_detection": "Boolean",
            **DELIVERY,
        },
    ),
    "sendPhoto": (
        "Message",
        {
            **BUSINESS,
            **TARGET,
            "photo": "InputFile|String!",
            **CAPTION,
            "show_caption_above_media": "Boolean",
            "has_spoiler": "Boolean",
            **DELIVERY,
        },
    ),
    "copyMessage": ("MessageId", {**TARGET, **FORWARDED, **CAPTION, "show_caption_above_media": "Boolean", **DELIVERY}),
    "forwardMessage": (
        "Message",
        {
            **TARGET,
            **FORWARDED,
            "disable_notification": "Boolean",
            "protect_content": "Boolean",
            "message_effect_id": "String~",
            "suggested_post_parameters": "SuggestedPostParameters~",
        },
    ),
    "editMessageText": (
        "Message|Boolean",
        {
            **EDITED,
            "text": "String 1-4096 parsed",
            "parse_mode": "String",
            "entities": "[MessageEntity]",
            "link_preview_options": "LinkPreviewOptions",
            "rich_message": "InputRichMessage~",
        },
    ),
    "editMessageCaption": ("Message|Boolean", {**EDITED, **CAPTION, "show_caption_above_media": "Boolean"}),
    "editMessageReplyMarkup": ("Message|Boolean", EDITED),
    "deleteMessage": ("Boolean", {**CHAT, "message_id": "Integer!"}),
    "deleteMessages": ("Boolean", {**CHAT, "message_ids": "[Integer]! 1-100 items"}),
    "setMessageReaction": (
        "Boolean",
        {**CHAT, "message_id": "Integer!", "reaction": "[ReactionType]", "is_big": "Boolean"},
    ),
    "answerCallbackQuery": (
        "Boolean",
        {
            "callback_query_id": "String!",
            "text": "String 0-200 characters",
            "show_alert": "Boolean",
            "url": "String",
            "cache_time": "Integer",
        },
    ),
    "createForumTopic": (
        "ForumTopic",
        {
            **CHAT,
            "name": "String! 1-128 characters",
            "icon_color": "Integer",
            "icon_custom_emoji_id": "String",
        },
    ),
    "editForumTopic": ("Boolean", {**TOPIC, "name": "String 0-128 characters", "icon_custom_emoji_id": "String"}),
    "closeForumTopic": ("Boolean", TOPIC),
    "reopenForumTopic": ("Boolean", TOPIC),
    "deleteForumTopic": ("Boolean", TOPIC),
    "pinChatMessage": ("Boolean", {**BUSINESS, **CHAT, "message_id": "Integer!", "disable_notification": "Boolean"}),
    "unpinChatMessage": ("Boolean", {**BUSINESS, **CHAT, "message_id": "Integer"}),
    "unpinAllChatMessages": ("Boolean", CHAT),
    "getFile": ("File", {"file_id": "String!"}),
    "getUserProfilePhotos": ("UserProfilePhotos", {"user_id": "Integer!", "offset": "Integer", "limit": "Integer"}),
    "setMyCommands": ("Boolean", {"commands": "[BotCommand]! 0-100 items", **SCOPED}),
    "getMyCommands": ("[BotCommand]", SCOPED),
    "deleteMyCommands": ("Boolean", SCOPED),
    "setMyName": ("Boolean", {"name": "String 0-64 characters", **LANGUAGE}),
    "getMyName": ("BotName", LANGUAGE),
    "setMyDescription": ("Boolean", {"description": "String 0-512 characters", **LANGUAGE}),
    "getMyDescription": ("BotDescription", LANGUAGE),
    "setMyShortDescription": ("Boolean", {"short_description": "String 0-120 characters", **LANGUAGE}),
    "getMyShortDescription": ("BotShortDescription", LANGUAGE),
    "setChatMenuButton": ("Boolean", {"chat_id": "Integer", "menu_button": "MenuButton"}),
    "getChatMenuButton": ("MenuButton", {"chat_id": "Integer"}),
}

BUTTON = {"text": "String!", "icon_custom_emoji_id": "String", "style": "String"}

OBJECTS: dict[str, dict[str, str] | tuple[str, ...]] = {
    "MessageEntity": {
        "type": "String!",
        "offset": "Integer!",
        "length": "Integer!",
        "url": "String",
        "user": "User",
        "language": "String",
        "custom_emoji_id": "String",
        "unix_time": "Integer",
        "date_time_format": "String",
    },
    "ReplyParameters": {
        "message_id": "Integer!",
        "chat_id": "Integer|String",
        "allow_sending_without_reply": "Boolean",
        "quote": "String 0-1024 parsed",
        "quote_parse_mode": "String",
        "quote_entities": "[MessageEntity]",
        "quote_position": "Integer",
        "checklist_task_id": "Integer",
        "poll_option_id": "String",
    },
    "LinkPreviewOptions": {
        "is_disabled": "Boolean",
        "url": "String",
        "prefer_small_media": "Boolean",
        "prefer_large_media": "Boolean",
        "show_above_text": "Boolean",
    },
    "InlineKeyboardMarkup": {"inline_keyboard": "[[InlineKeyboardButton]]!"},
    "InlineKeyboardButton": {
        **BUTTON,
        "url": "String",
        "callback_data": "String 1-64 bytes",
        "web_app": "WebAppInfo",
        "login_url": "LoginUrl",
        "switch_inline_query": "String",
        "switch_inline_query_current_chat": "String",
        "switch_inline_query_chosen_chat": "SwitchInlineQueryChosenChat",
        "copy_text": "CopyTextButton",
        "callback_game": "CallbackGame",
        "pay": "Boolean",
    },
    "CopyTextButton": {"text": "String! 1-256 characters"},
    "WebAppInfo": {"url": "String!"},
    "ReplyKeyboardMarkup": {
        "keyboard": "[[KeyboardButton]]!",
        "is_persistent": "Boolean",
        "resize_keyboard": "Boolean",
        "one_time_keyboard": "Boolean",
        "input_field_placeholder": "String 1-64 characters",
        "selective": "Boolean",
    },
    "KeyboardButton": {
        **BUTTON,
        "request_users": "KeyboardButtonRequestUsers",
        "request_chat": "KeyboardButtonRequestChat",
        "request_managed_bot": "KeyboardButtonRequestManagedBot",
        "request_contact": "Boolean",
        "request_location": "Boolean",
        "request_poll": "KeyboardButtonPollType",
        "web_app": "WebAppInfo",
    },
    "ReplyKeyboardRemove": {"remove_keyboard": "Boolean!", "selective": "Boolean"},
    "ForceReply": {
        "force_reply": "Boolean!",
        "input_field_placeholder": "String 1-64 characters",
        "selective": "Boolean",
    },
    "BotCommand": {"command": "String! 1-32 characters", "description": "String! 1-256 characters"},
    "BotCommandScope": (
        "BotCommandScopeDefault",
        "BotCommandScopeAllPrivateChats",
        "BotCommandScopeAllGroupChats",
        "BotCommandScopeAllChatAdministrators",
        "BotCommandScopeChat",
        "BotCommandScopeChatAdministrators",
        "BotCommandScopeChatMember",
    ),
    "BotCommandScopeDefault": {"type": "String! =default"},
    "BotCommandScopeAllPrivateChats": {"type": "String! =all_private_chats"},
    "BotCommandScopeAllGroupChats": {"type": "String! =all_group_chats"},
    "BotCommandScopeAllChatAdministrators": {"type": "String! =all_chat_administrators"},
    "BotCommandScopeChat": {"type": "String! =chat", **CHAT},
    "BotCommandScopeChatAdministrators": {"type": "String! =chat_administrators", **CHAT},
    "BotCommandScopeChatMember": {"type": "String! =chat_member", **CHAT, "user_id": "Integer!"},
    "ReactionType": ("ReactionTypeEmoji", "ReactionTypeCustomEmoji", "ReactionTypePaid"),
    "ReactionTypeEmoji": {"type": "String! =emoji", "emoji": "String!"},
    "ReactionTypeCustomEmoji": {"type": "String! =custom_emoji", "custom_emoji_id": "String!"},
    "ReactionTypePaid": {"type": "String! =paid"},
    "MenuButton": ("MenuButtonCommands", "MenuButtonWebApp", "MenuButtonDefault"),
    "MenuButtonCommands": {"type": "String! =commands"},
    "MenuButtonWebApp": {"type": "String! =web_app", "text": "String!", "web_app": "WebAppInfo!"},
    "MenuButtonDefault": {"type": "String! =default"},
}

TABLE = parse_table(METHODS, OBJECTS)
