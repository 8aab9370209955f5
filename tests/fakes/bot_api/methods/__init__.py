"""The Bot API's methods, one file a subject; the list below is all there is.

One rule: a method reads the world, refuses in Telegram's words, or changes the world; parameters are already typed.
"""

from collections.abc import Awaitable, Callable

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.errors import Json

from . import buttons, chats, feed, media, profile, talk, topics

Handler = Callable[[Emulator, Json], object | Awaitable[object]]

HANDLERS: dict[str, Handler] = {
    "getMe": profile.describe_bot,
    "logOut": profile.log_out,
    "close": profile.close,
    "getUpdates": feed.take_updates,
    "setWebhook": feed.set_webhook,
    "deleteWebhook": feed.delete_webhook,
    "getWebhookInfo": feed.describe_webhook,
    "getChat": chats.describe_chat,
    "getChatMember": chats.describe_member,
    "getChatMemberCount": chats.count_members,
    "getChatAdministrators": chats.list_administrators,
    "leaveChat": chats.leave,
    "sendMessage": talk.send_message,
    "sendMessageDraft": talk.send_draft,
    "sendChatAction": talk.send_action,
    "sendDocument": media.send_document,
    "sendPhoto": media.send_photo,
    "copyMessage": media.copy_message,
    "forwardMessage": media.forward_message,
    "editMessageText": talk.edit_text,
    "editMessageCaption": talk.edit_caption,
    "editMessageReplyMarkup": talk.edit_markup,
    "deleteMessage": talk.delete_message,
    "deleteMessages": talk.delete_messages,
    "setMessageReaction": buttons.react,
    "answerCallbackQuery": buttons.answer,
    "createForumTopic": topics.create,
    "editForumTopic": topics.edit,
    "closeForumTopic": topics.close,
    "reopenForumTopic": topics.reopen,
    "deleteForumTopic": topics.delete,
    "pinChatMessage": chats.pin,
    "unpinChatMessage": chats.unpin,
    "unpinAllChatMessages": chats.unpin_all,
    "getFile": media.describe_file,
    "getUserProfilePhotos": chats.list_photos,
    "setMyCommands": profile.set_commands,
    "getMyCommands": profile.list_commands,
    "deleteMyCommands": profile.delete_commands,
    "setMyName": profile.set_name,
    "getMyName": profile.describe_name,
    "setMyDescription": profile.set_description,
    "getMyDescription": profile.describe_description,
    "setMyShortDescription": profile.set_short_description,
    "getMyShortDescription": profile.describe_short_description,
    "setChatMenuButton": profile.set_menu_button,
    "getChatMenuButton": profile.describe_menu_button,
}
