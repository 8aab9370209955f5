"""Files as the Bot API describes them.

One rule: sizes come from the bytes; a photo that is neither PNG nor JPEG is refused, as the real server does.
"""

import struct
from pathlib import PurePath

from .errors import Json, refuse
from .spec import Upload
from .world import StoredFile, World

# kind -> folder on the file server, extension where the name has none, further fields of the API's object
_KINDS: dict[str, tuple[str, str, Json]] = {
    "document": ("documents", "", {}),
    "photo": ("photos", ".jpg", {}),
    "voice": ("voice", ".oga", {"duration": 3}),
    "audio": ("music", ".mp3", {"duration": 180}),
    "video": ("videos", ".mp4", {"duration": 5, "width": 640, "height": 360}),
    "sticker": (
        "stickers",
        ".webp",
        {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False, "emoji": "👍"},
    ),
}
_NAMED = ("document", "audio", "video")  # these objects carry file_name
_TYPED = ("document", "audio", "video", "voice")  # and these mime_type
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def keep_file(world: World, kind: str, upload: Upload) -> StoredFile:
    if kind not in _KINDS:
        raise ValueError(f"no such kind of file: {kind}; there are {', '.join(_KINDS)}")
    number = len(world.files) + 1
    folder, extension, _ = _KINDS[kind]
    suffix = PurePath(upload.name).suffix or extension
    file = StoredFile(
        f"{kind}-{number}", kind, upload.name, upload.mime, upload.data, f"{folder}/file_{number}{suffix}"
    )
    content_of(file)  # refuse it before it is kept
    world.files[file.id] = file
    return file


def content_of(file: StoredFile) -> Json:
    """The field of the API's Message that holds this file."""
    described: Json = {
        "file_id": file.id,
        "file_unique_id": f"unique-{file.id}",
        "file_size": len(file.data),
        **_KINDS[file.kind][2],
    }
    if file.kind == "photo":
        width, height = picture_size(file.data)
        return {"photo": [{**described, "width": width, "height": height}]}
    if file.kind in _NAMED and file.name:
        described["file_name"] = file.name
    if file.kind in _TYPED and file.mime:
        described["mime_type"] = file.mime
    return {file.kind: described}


def picture_size(data: bytes) -> tuple[int, int]:
    """Width and height from the header of a PNG or JPEG; raises IMAGE_PROCESS_FAILED for anything else."""
    if data.startswith(_PNG) and len(data) >= 24:
        return struct.unpack(">II", data[16:24])
    position = 2
    while data.startswith(b"\xff\xd8") and position + 9 <= len(data) and data[position] == 0xFF:
        if data[position + 1] in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
    raise refuse("IMAGE_PROCESS_FAILED")
