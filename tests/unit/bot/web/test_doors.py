"""Nobody gets in who may not: tokens, links, sessions, forms, and what comes from elsewhere."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from bot.config import Web
from bot.web.guard import Bucket, Limits
from memory.scope import VIEW_TELEMETRY
from memory.storage import members, people, tokens
from memory.storage.database import Database
from memory.storage.tables import api_tokens, login_links, web_sessions
from memory.types import Role
from tests.fakes.house import house
from tests.fakes.website import HOST, PATIENT, website

OVERVIEW = "/api/ai/telemetry/overview"
OWNER: dict[str, Any] = {"owners": ["fake:42"], "web": Web(enabled=True)}


async def test_without_a_token_it_is_401_and_without_the_grant_403(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        nobody = await site.client.get(OVERVIEW)
        assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")
        other = await site.client.get(OVERVIEW, headers=await site.program(["manage:users"]))
        assert other.status_code == 403
        assert VIEW_TELEMETRY in other.json()["detail"]
        assert (await site.client.get(OVERVIEW, headers=await site.program())).status_code == 200


@pytest.mark.parametrize("path", ["overview", "events", "timeseries", "top-tools", "top-users"])
async def test_every_question_needs_the_grant(database: Database, tmp_path: Path, path: str) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        assert (await site.client.get(f"/api/ai/telemetry/{path}")).status_code == 401


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic bWU6bWU=", "Bearer merk_wrong", "merk_wrong", "Bearer \x7f"]
)
async def test_what_is_no_token_is_nobody(database: Database, tmp_path: Path, header: str) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        assert (await site.client.get(OVERVIEW, headers={"Authorization": header})).status_code == 401


async def test_a_revoked_token_and_an_expired_one_open_nothing(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        revoked, expiring = await site.program(), await site.program(days=1)
        for header in (revoked, expiring):
            assert (await site.client.get(OVERVIEW, headers=header)).status_code == 200
        async with database.write() as connection:
            assert await tokens.revoke(connection, 1, 5)
            assert not await tokens.revoke(connection, 1, 5)
        opened.clock.advance(days=1)
        for header in (revoked, expiring):
            assert (await site.client.get(OVERVIEW, headers=header)).status_code == 401


async def test_a_token_is_stored_as_a_hash_and_its_use_is_noted(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        header = await site.program()
        await site.client.get(OVERVIEW, headers=header)
        async with database.read() as connection:
            (row,) = (await connection.execute(sa.select(api_tokens))).mappings()
        assert header["Authorization"].removeprefix("Bearer ") not in repr(dict(row))
        assert len(row["hash"]) == 64
        assert row["last_used_at"] is not None


# --- people in browsers ------------------------------------------------------------------------------


async def test_the_link_opens_a_session_once(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        link = await site.link()
        assert link.startswith(f"{HOST}/login?key=")
        for _ in range(2):  # whoever previews links opens it too
            page = await site.client.get(link)
            assert page.status_code == 200
            assert "set-cookie" not in page.headers
        key = link.partition("key=")[2]
        entered = await site.client.post("/login", data={"key": key})
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "secure" not in cookie  # over plain http on this machine it would not be sent back
        assert (await site.client.get(OVERVIEW)).status_code == 200
        site.client.cookies.clear()
        assert (await site.client.post("/login", data={"key": key})).status_code == 401
        assert (await site.client.get(OVERVIEW)).status_code == 401
        async with database.read() as connection:
            stored = repr((await connection.execute(sa.select(login_links.c.hash))).all())
            stored += repr((await connection.execute(sa.select(web_sessions.c.hash))).all())
        assert key not in stored


async def test_a_link_holds_for_ten_minutes_and_only_the_newest(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        first = (await site.link()).partition("key=")[2]
        second = (await site.link()).partition("key=")[2]
        assert (await site.client.post("/login", data={"key": first})).status_code == 401
        opened.clock.advance(minutes=10)
        assert (await site.client.post("/login", data={"key": second})).status_code == 401


async def test_a_session_ends_after_a_week_and_with_logout(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await site.log_in()
        opened.clock.advance(days=7)
        assert (await site.client.get(OVERVIEW)).status_code == 401
        await site.log_in()
        session = site.client.cookies["merk_session"]
        left = await site.client.post("/logout", data={"form_key": tokens.form_key(session)})
        assert (left.status_code, left.headers["location"]) == (303, "/login")
        site.client.cookies.set("merk_session", session)
        assert (await site.client.get(OVERVIEW)).status_code == 401


@pytest.mark.parametrize("data", [{}, {"form_key": ""}, {"form_key": "0" * 64}, {"form_key": "é"}])
async def test_a_write_without_the_forms_key_is_refused(
    database: Database, tmp_path: Path, data: dict[str, str]
) -> None:
    """CSRF: another site can send our cookie, but not what stands in our pages."""
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        await site.log_in()
        assert (await site.client.post("/logout", data=data)).status_code == 403
        assert (await site.client.get(OVERVIEW)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://127.0.0.1:8080"},
    ],
)
async def test_a_form_of_another_site_is_refused(database: Database, tmp_path: Path, headers: dict[str, str]) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        key = (await site.link()).partition("key=")[2]
        assert (await site.client.post("/login", data={"key": key}, headers=headers)).status_code == 403
        ours = {"Origin": HOST, "Sec-Fetch-Site": "same-origin"}
        assert (await site.client.post("/login", data={"key": key}, headers=ours)).status_code == 303


async def test_a_cookie_of_another_tenant_opens_nothing(database: Database, tmp_path: Path) -> None:
    """Neither of another database, nor of a copy of this one under another secret."""
    async with house(database, tmp_path, **OWNER) as opened:
        async with website(opened, web=Web(enabled=True, secret=SecretStr("one"))) as first:
            await first.log_in()
            stolen = first.client.cookies["merk_session"]
            assert (await first.client.get(OVERVIEW)).status_code == 200
        async with website(opened, web=Web(enabled=True, secret=SecretStr("two"))) as second:
            second.client.cookies.set("merk_session", stolen)
            assert (await second.client.get(OVERVIEW)).status_code == 401


async def test_the_dashboard_is_for_the_owner_and_who_has_the_grant(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened, website(opened) as site:
        bob: dict[str, Any] = {"from": "7", "chat": "7"}
        (refused,) = await opened.say("/dashboard", **bob)
        assert "http" not in refused
        async with database.write() as connection:
            user = await people.find(connection, "fake:7")
            assert user is not None
            await members.grant(connection, user.id, VIEW_TELEMETRY)
        await site.log_in(**bob)
        assert (await site.client.get(OVERVIEW)).status_code == 200
        async with database.write() as connection:
            await members.revoke(connection, user.id, VIEW_TELEMETRY)
        assert (await site.client.get(OVERVIEW)).status_code == 403  # at once, not at the next login


async def test_the_link_is_never_sent_into_a_group(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNER) as opened:
        (said,) = await opened.say("/dashboard", group=True, chat="-5")
    assert "http" not in said


async def test_where_the_web_is_off_the_command_says_how_to_switch_it_on(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, owners=["fake:42"]) as opened:
        (said,) = await opened.say("/dashboard")
    assert "web.enabled" in said


async def test_who_is_no_owner_any_more_is_none_from_the_next_start(database: Database) -> None:
    async with database.write() as connection:
        await people.admit(connection, "telegram:1", "Ada", Role.OWNER, "en", 0)
        await people.admit(connection, "telegram:2", "Bob", Role.OWNER, "en", 0)
        await people.demote_others(connection, ["telegram:1"])
        found = [await people.find(connection, f"telegram:{number}") for number in (1, 2)]
    assert [user.role for user in found if user] == [Role.OWNER, Role.MEMBER]


# --- what is in front --------------------------------------------------------------------------------


async def test_every_answer_carries_the_headers_that_keep_a_browser_safe(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        for path in ("/healthz", "/login", OVERVIEW, "/nothing"):
            headers = (await site.client.get(path)).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in headers
            assert "strict-transport-security" not in headers


async def test_behind_tls_the_cookie_is_secure(database: Database, tmp_path: Path) -> None:
    web = Web(enabled=True, url="https://merk.example.org", trusted_proxy=("127.0.0.1",))
    async with (
        house(database, tmp_path, owners=["fake:42"], web=web) as opened,
        website(opened, web=web, base="http://merk.example.org") as site,
    ):
        link = await site.link()
        assert link.startswith("https://merk.example.org/login?key=")
        passed_on = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
        entered = await site.client.post("/login", data={"key": link.partition("key=")[2]}, headers=passed_on)
        assert "secure" in entered.headers["set-cookie"].lower()
        assert "strict-transport-security" in entered.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "merk.example.org:80@evil.example"])
async def test_another_host_name_is_refused(database: Database, tmp_path: Path, host: str) -> None:
    """DNS rebinding: a name of somebody else's that leads to this machine."""
    async with house(database, tmp_path) as opened, website(opened) as site:
        assert (await site.client.get("/healthz", headers={"Host": host})).status_code == 400


@pytest.mark.parametrize(
    "path",
    ["/static/../../../etc/passwd", "/static/..%2f..%2f..%2fetc/passwd", "/static//etc/passwd", "/%2e%2e/config.toml"],
)
async def test_no_path_leads_out_of_the_site(database: Database, tmp_path: Path, path: str) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        response = await site.client.get(path)
    assert response.status_code in (404, 405)
    assert "root:" not in response.text


@pytest.mark.parametrize("key", ["a\r\nSet-Cookie: x=1", "%0d%0aX-Evil: 1", '"><script>alert(1)</script>', "\0"])
async def test_no_header_and_no_tag_can_be_slipped_in(database: Database, tmp_path: Path, key: str) -> None:
    async with house(database, tmp_path) as opened, website(opened) as site:
        page = await site.client.get("/login", params={"key": key})
        assert "<script>" not in page.text
        assert "x-evil" not in page.headers
        assert "set-cookie" not in page.headers
        entered = await site.client.post("/login", data={"key": key})
        assert entered.status_code == 401
        assert "x-evil" not in entered.headers


async def test_guessing_is_slowed_down_and_others_are_not(database: Database, tmp_path: Path) -> None:
    limits = Limits(per_second=1e6, burst=10**6, wrong_per_second=0.001, wrong_burst=3)
    async with house(database, tmp_path) as opened, website(opened, limits=limits) as site:
        header = {"Authorization": "Bearer merk_wrong"}
        seen = [(await site.client.get(OVERVIEW, headers=header)).status_code for _ in range(5)]
        assert seen == [401, 401, 401, 429, 429]
        assert (await site.client.get("/healthz")).status_code in (200, 503)


async def test_too_many_requests_are_told_when_to_come_again(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as opened, website(opened, limits=Limits(0.001, 2)) as site:
        for _ in range(2):
            assert (await site.client.get("/readyz")).status_code != 429
        late = await site.client.get("/readyz")
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) >= 1


def test_a_bucket_refills_as_time_goes_by_and_forgets_who_is_long_gone() -> None:
    now = 0.0
    bucket = Bucket(1.0, 2, lambda: now)
    bucket.take("a")
    bucket.take("a")
    assert bucket.wait("a") == 1.0
    assert bucket.wait("b") == 0.0
    now = 1.0
    assert bucket.wait("a") == 0.0
    for number in range(20_000):
        bucket.take(str(number))
    assert bucket.wait("a") == 0.0
    assert PATIENT.burst > 1
