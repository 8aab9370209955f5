"""What several contract suites start with."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.transports import MatrixRig


@pytest.fixture
async def rig() -> AsyncIterator[MatrixRig]:
    """Matrix, in a room that Merk has been in before."""
    async with MatrixRig() as made:
        yield made
