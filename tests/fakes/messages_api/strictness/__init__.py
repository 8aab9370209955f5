"""What the API refuses, in its wording. `check` raises ApiError for the first rule a request breaks."""

from collections.abc import Mapping

from tests.fakes.messages_api.catalogue import Spec
from tests.fakes.messages_api.scene import Request
from tests.fakes.messages_api.seals import Seals
from tests.fakes.messages_api.strictness.blocks import check_blocks
from tests.fakes.messages_api.strictness.breakpoints import check_breakpoints
from tests.fakes.messages_api.strictness.params import check_params, check_sender
from tests.fakes.messages_api.strictness.sealed import check_sealed
from tests.fakes.messages_api.strictness.tools import check_tools
from tests.fakes.messages_api.strictness.turns import check_turns

__all__ = ["check", "check_sender"]


def check(request: Request, models: Mapping[str, Spec], seals: Seals, *, counts: bool) -> Spec:
    """Check everything but the sender. `counts`: for count_tokens, which takes fewer parameters.

    Raises ApiError 404 for an unknown model and 400 for the rest.
    """
    spec = check_params(request, models, counts=counts)
    check_tools(request, spec)
    check_blocks(request)
    check_turns(request, spec)
    check_breakpoints(request)
    check_sealed(request, spec, seals)
    return spec
