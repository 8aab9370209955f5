"""Whatever is asked within the schema or beside it, the site answers; no question is a fault of the program."""

import string
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.storage.database import Database
from tests.fakes.house import house
from tests.fakes.website import Website, website
from tests.unit.bot.web.test_api import fill

ODD = st.one_of(
    st.text(max_size=30),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["", "null", "\0", "1e9", "٣", "-0", "true", "' OR 1=1 --", "🦓", "a" * 5000]),
)


@pytest.fixture
async def site(database: Database, tmp_path: Path) -> AsyncGenerator[Website, None]:
    async with house(database, tmp_path) as opened, website(opened) as found:
        await fill(database, opened.clock.now(), 50)
        yield found


def in_schema(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Values that the schema of a parameter allows."""
    if "anyOf" in schema:
        return st.one_of([in_schema(each) for each in schema["anyOf"] if each.get("type") != "null"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"]).map(str)
    if schema.get("type") == "integer":
        top = schema.get("maximum", schema.get("exclusiveMaximum", 2**63) - 1)
        return st.integers(schema.get("minimum", 0), int(top)).map(str)
    return st.text(string.printable, max_size=20)


def resolved(whole: dict[str, Any], schema: Any) -> Any:
    if isinstance(schema, dict):
        named = cast("dict[str, Any]", schema)
        if "$ref" in named:
            return resolved(whole, whole["components"]["schemas"][named["$ref"].rpartition("/")[2]])
        return {key: resolved(whole, each) for key, each in named.items()}
    return [resolved(whole, each) for each in cast("list[Any]", schema)] if isinstance(schema, list) else schema


@given(data=st.data())
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_question_is_answered_with_500(site: Website, data: st.DataObject) -> None:
    schema = site.site.openapi()
    paths = sorted(path for path, methods in schema["paths"].items() if "get" in methods)
    path = data.draw(st.sampled_from(paths))
    operation = schema["paths"][path]["get"]
    parameters = {each["name"]: resolved(schema, each["schema"]) for each in operation.get("parameters", [])}
    asked: dict[str, str] = {}
    is_odd = False
    for name, of in parameters.items():
        match data.draw(st.sampled_from(["leave", "fit", "fit", "odd"])):
            case "fit":
                asked[name] = data.draw(in_schema(of))
            case "odd":
                asked[name], is_odd = data.draw(ODD), True
            case _:
                pass
    response = await site.client.get(path, params=asked, headers=await site.program())
    allowed = {200, 422} if is_odd else {200}
    assert response.status_code in (allowed | {503} if path in ("/healthz", "/readyz") else allowed), response.text
    if response.status_code == 200 and path.startswith("/api"):
        told = resolved(schema, operation["responses"]["200"]["content"]["application/json"]["schema"])
        jsonschema.validate(response.json(), told)


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    path=st.one_of(
        st.sampled_from(["/", "/login", "/logout", "/healthz", "/metrics", "/openapi.json"]),
        st.text(string.ascii_letters + string.digits + "/.%-_~", max_size=40).map(lambda text: "/" + text.lstrip("/")),
    ),
    body=st.binary(max_size=200),
    cookie=st.text(string.ascii_letters + string.digits + "=;_-", max_size=40),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_request_at_all_is_answered_with_500(
    site: Website, method: str, path: str, body: bytes, cookie: str
) -> None:
    headers = {"Cookie": f"merk_session={cookie}", "Content-Type": "application/x-www-form-urlencoded"}
    response = await site.client.request(method, path, content=body, headers=headers)
    assert response.status_code != 500, response.text
