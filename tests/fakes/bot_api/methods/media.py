"""Files: sending, fetching, copying and forwarding."""

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.errors import BotApiError, Json, refuse
from tests.fakes.bot_api.files import content_of, keep_file
from tests.fakes.bot_api.limits import DOWNLOAD_BYTES, PHOTO_BYTES, UPLOAD_BYTES
from tests.fakes.bot_api.placing import origin_of
from tests.fakes.bot_api.spec import Upload
from tests.fakes.bot_api.world import Message, StoredFile, World

from .talk import caption_text, deliver

_CARRIED = (
    "text",
    "entities",
    "caption",
    "caption_entities",
    "link_preview_options",
    "photo",
    "document",
    "voice",
    "audio",
    "video",
    "sticker",
)


def send_document(emulator: Emulator, params: Json) -> Json:
    return _send(emulator, params, "document")


def send_photo(emulator: Emulator, params: Json) -> Json:
    return _send(emulator, params, "photo")


def _send(emulator: Emulator, params: Json, kind: str) -> Json:
    caption = caption_text(params)
    emulator.world.open_chat(params["chat_id"])
    file = _file(emulator.world, kind, params[kind])
    return deliver(emulator, params, {**content_of(file), **caption}).raw


def _file(world: World, kind: str, given: Upload | str) -> StoredFile:
    if isinstance(given, Upload):
        if not given.data:
            raise refuse("file must be non-empty")
        if len(given.data) > (PHOTO_BYTES if kind == "photo" else UPLOAD_BYTES):
            raise BotApiError(413, "Request Entity Too Large")
        return keep_file(world, kind, given)
    if given.startswith(("http://", "https://")):
        world.violate("not-implemented", "media", f"a {kind} by URL")
        raise refuse(f"the emulator fetches nothing: upload the {kind} instead of sending a URL", 501)
    if given not in world.files:
        raise refuse("invalid file_id")
    return world.files[given]


def describe_file(emulator: Emulator, params: Json) -> Json:
    file = emulator.world.files.get(params["file_id"])
    if file is None:
        raise refuse("invalid file_id")
    if len(file.data) > DOWNLOAD_BYTES:
        raise refuse("file is too big")
    return {
        "file_id": file.id,
        "file_unique_id": f"unique-{file.id}",
        "file_size": len(file.data),
        "file_path": file.path,
    }


def copy_message(emulator: Emulator, params: Json) -> Json:
    message = _source(emulator.world, params, "message to copy")
    content = _carried(message)
    if "caption" in params and "text" not in content:
        content |= caption_text(params)
    return {"message_id": deliver(emulator, params, content).id}


def forward_message(emulator: Emulator, params: Json) -> Json:
    message = _source(emulator.world, params, "message to forward")
    if message.raw.get("has_protected_content"):
        raise refuse("message has protected content and can't be forwarded")
    return deliver(emulator, params, {**_carried(message), "forward_origin": origin_of(message)}).raw


def _source(world: World, params: Json, role: str) -> Message:
    message = world.message(world.chat(params["from_chat_id"]), params["message_id"], role)
    if message.is_service:
        raise refuse(f"{role.removeprefix('message to ')} of a service message is not possible")
    return message


def _carried(message: Message) -> Json:
    return {name: message.raw[name] for name in _CARRIED if name in message.raw}
