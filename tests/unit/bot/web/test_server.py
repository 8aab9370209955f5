"""The server runs in the loop of the program, and where it cannot, a sentence says why."""

import asyncio
import socket
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from bot.config import ConfigError, Web, load
from bot.web.inside import Inside
from bot.web.server import WebServer
from memory.storage.database import Database
from tests.fakes.house import House, house


def inside(opened: House, web: Web) -> Inside:
    app = opened.app
    settings = app.settings.model_copy(update={"web": web})
    return Inside(settings, app.database, app.clock, app.memory, app.transports)


async def test_it_answers_from_start_to_stop(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        server = WebServer(inside(opened, Web(enabled=True, listen="127.0.0.1:0")))
        await server.start()
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
                told = await client.get("/readyz")
                assert told.status_code == 200
                assert "server" not in told.headers
                assert (await client.get("/api/ai/telemetry/overview")).status_code == 401
        finally:
            await server.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.port)


async def test_an_address_that_is_taken_is_said_with_the_key(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            server = WebServer(inside(opened, Web(enabled=True, listen=f"127.0.0.1:{port}")))
            with pytest.raises(ConfigError, match=rf"web\.listen: 127\.0\.0\.1:{port} is not to be had"):
                await server.start()
            await server.stop()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of localhost, and its key."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


async def test_with_a_certificate_it_speaks_tls(database: Database, tmp_path: Path, pair: tuple[Path, Path]) -> None:
    certificate, key = pair
    web = Web(enabled=True, listen="127.0.0.1:0", tls_certificate=certificate, tls_key=key)
    async with house(database, tmp_path) as opened:
        server = WebServer(inside(opened, web))
        await server.start()
        try:
            trusting = ssl.create_default_context(cafile=str(certificate))
            async with httpx.AsyncClient(verify=trusting) as client:
                told = await client.get(f"https://localhost:{server.port}/readyz")
            assert "strict-transport-security" in told.headers
        finally:
            await server.stop()


async def test_a_certificate_that_is_none_is_said(database: Database, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    web = Web(enabled=True, listen="127.0.0.1:0", tls_certificate=wrong, tls_key=wrong)
    async with house(database, tmp_path) as opened:
        with pytest.raises(ConfigError, match=r"web\.tls_certificate"):
            await WebServer(inside(opened, web)).start()


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('listen = "0.0.0.0:8080"', r"web\.listen: 0\.0\.0\.0 can be reached from other machines"),
        ('listen = "[::]:8080"', r"web\.listen: \[::\] can be reached from other machines"),
        ('listen = "merk.example.org:80"', r"web\.listen: merk\.example\.org can be reached"),
        ('listen = "8080"', r"web\.listen: must be an address and a port"),
        ('trusted_proxy = ["proxy"]', r"web\.trusted_proxy: 'proxy' must be an address or a network"),
        ('tls_key = "key.pem"', "web: tls_certificate and tls_key belong together"),
        ('url = "merk.example.org"', r"web\.url: must be an address"),
    ],
)
def test_what_would_be_unsafe_is_refused_with_the_key_and_the_remedy(tmp_path: Path, section: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[web]\nenabled = true\n{section}\n")
    with pytest.raises(ConfigError, match=said):
        load(file)


@pytest.mark.parametrize(
    "section",
    [
        'listen = "127.0.0.1:8080"',
        'listen = "[::1]:8080"',
        'listen = "localhost:8080"',
        'listen = "0.0.0.0:8080"\ntrusted_proxy = ["10.0.0.0/8"]',
        'listen = "0.0.0.0:8080"\ntls_certificate = "c.pem"\ntls_key = "k.pem"',
        'enabled = false\nlisten = "0.0.0.0:8080"',
    ],
)
def test_what_is_safe_is_taken(tmp_path: Path, section: str) -> None:
    file = tmp_path / "config.toml"
    enabled = "" if "enabled" in section else "enabled = true\n"
    file.write_text(f"[web]\n{enabled}{section}\n")
    assert load(file).web.listen
