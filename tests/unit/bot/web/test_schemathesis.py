"""An independent reader of our OpenAPI asks all it describes, rightly and wrongly: every answer is as described."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis import checks as common
from schemathesis.specs.openapi import checks

from memory.storage.database import Database
from tests.fakes.house import house
from tests.fakes.website import HOST, Website, website
from tests.unit.bot.web.test_api import fill

_NAMES = ("status_code", "content_type", "response_headers", "response_schema")
CHECKS: list[Any] = [vars(common)["not_a_server_error"], *(vars(checks)[f"{name}_conformance"] for name in _NAMES)]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
UNWATCHED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much)
EXAMPLES = 150
"""Over all operations: some 10 s on a slow machine."""


@pytest.fixture
async def site(database: Database, tmp_path: Path) -> AsyncGenerator[Website, None]:
    async with house(database, tmp_path) as opened, website(opened) as found:
        await fill(database, opened.clock.now(), 50)
        yield found


@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=UNWATCHED)
async def test_every_answer_is_as_the_schema_says_and_none_is_a_fault(site: Website, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(_operations(site)))
    case = data.draw(operation.as_strategy(generation_mode=data.draw(st.sampled_from(MODES))))
    token = await site.program() if data.draw(st.sampled_from([True] * 5 + [False])) else {}
    response = await site.client.request(**_sendable(case.as_transport_kwargs(base_url=HOST), token))
    case.validate_response(response, checks=CHECKS)


def _operations(site: Website) -> list[Any]:
    """Its types are not all told."""
    schema = cast("Any", schemathesis.openapi.from_dict(site.site.openapi()))  # pyright: ignore[reportUnknownMemberType]
    return [each.ok() for each in schema.get_all_operations()]


def _sendable(asked: dict[str, Any], token: dict[str, str]) -> dict[str, Any]:
    """What was made for one HTTP library, as another one takes it: httpx has cookies in a head of their own."""
    cookies: dict[str, Any] = asked.pop("cookies", None) or {}
    headers = {name: str(value).encode() for name, value in asked["headers"].items() if value is not None}
    if cookies:
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items()).encode()
    if token:
        headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    return {**asked, "headers": headers | {name: value.encode() for name, value in token.items()}}
