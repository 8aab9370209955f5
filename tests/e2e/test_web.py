"""The web server of a real `merk run`: a token made beside it, a link from the bot, a session, and an end with it."""

import re
import socket
from pathlib import Path

import httpx

from tests.e2e.merk_process import deployment

ADA = 42
OVERVIEW = "/api/ai/telemetry/overview"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


async def test_a_turn_is_seen_by_a_program_and_by_the_owner_in_a_browser(tmp_path: Path) -> None:
    port = free_port()
    web = {"MERK_WEB__ENABLED": "true", "MERK_WEB__LISTEN": f"127.0.0.1:{port}"}
    owner = {"MERK_ACCESS__OWNERS": f"telegram:{ADA}"}
    async with deployment(tmp_path, more=web | owner) as merk, httpx.AsyncClient() as client:
        client.base_url = httpx.URL(f"http://127.0.0.1:{port}")
        merk.telegram.private_chat(ADA, "Ada")
        await merk.start()
        merk.telegram.say(ADA, "hello there")
        await merk.telegram.wait_text(ADA, "Echo: hello there", timeout=20)
        assert (await client.get(OVERVIEW)).status_code == 401
        status, said = await merk.run("token", "create", "--grant", "view:telemetry")
        token = re.search(r"merk_\S+", said)
        assert (status, bool(token)) == (0, True)
        assert token is not None
        told = await client.get(OVERVIEW, headers={"Authorization": f"Bearer {token[0]}"})
        assert (told.status_code, told.json()["turns"]) == (200, 1)
        assert (await client.get("/readyz")).json() == {"ready": True}
        assert "merk_turns_total" in (await client.get("/metrics")).text
        merk.telegram.say(ADA, "/dashboard")
        link = re.search(r"http\S+", (await merk.telegram.wait_text(ADA, "login", timeout=10)).text)
        assert link is not None
        key = link[0].partition("key=")[2]
        assert (await client.post("/login", data={"key": key})).status_code == 303
        assert (await client.get(OVERVIEW)).json()["turns"] == 1
        await merk.stop()
