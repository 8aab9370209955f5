"""The transports that the configuration asks for, each with what it needs to know of people and buttons."""

from bot.config import ConfigError, Settings
from bot.transports.base import Transport
from bot.transports.matrix.account import MatrixSettings
from bot.transports.matrix.errors import AccountError
from bot.transports.matrix.membership import MayInvite
from bot.transports.matrix.noting import MayPress
from bot.transports.matrix.transport import MatrixTransport
from bot.transports.telegram.transport import TelegramTransport
from bot.transports.telegram.webhook import WebhookSettings
from handlers.access import Policy, Verdict, judge
from handlers.commands import MENU, menu
from handlers.locales import phrases
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import confirmations, people
from memory.storage.database import Database


def policy_of(settings: Settings) -> Policy:
    section = settings.access
    return Policy(frozenset(section.owners), section.admit, frozenset(section.allow))


def make_transports(settings: Settings, clock: Clock, database: Database) -> list[Transport]:
    """Every configured transport. Raises `ConfigError` where one cannot be made."""
    made: list[Transport] = []
    if settings.telegram.token is not None:
        made.append(_telegram(settings, clock))
    if settings.matrix.homeserver is not None:
        made.append(_matrix(settings, clock, database))
    return made


def _telegram(settings: Settings, clock: Clock) -> TelegramTransport:
    section = settings.telegram
    assert section.token is not None
    webhook = None
    if section.mode == "webhook":
        assert section.webhook_url is not None
        assert section.webhook_secret is not None
        host, _, port = section.webhook_listen.rpartition(":")
        webhook = WebhookSettings(section.webhook_url, section.webhook_secret.get_secret_value(), host, int(port))
    try:
        return TelegramTransport(
            section.token.get_secret_value(), clock, menu, base_url=section.base_url, webhook=webhook
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def matrix_settings(settings: Settings) -> MatrixSettings:
    """What the transport is told; the section must be configured."""
    section = settings.matrix
    assert section.homeserver is not None
    assert section.user_id is not None
    return MatrixSettings(
        homeserver=section.homeserver,
        user_id=section.user_id,
        folder=settings.tenant.data_dir / "matrix",
        password=section.password.get_secret_value() if section.password else None,
        access_token=section.access_token.get_secret_value() if section.access_token else None,
        device_id=section.device_id,
        encryption=section.encryption,
        edit_seconds=section.edit_seconds,
        display_name=settings.tenant.name,
        avatar=section.avatar,
    )


def _matrix(settings: Settings, clock: Clock, database: Database) -> MatrixTransport:
    try:
        return MatrixTransport(
            matrix_settings(settings),
            commands=MENU,
            may_invite=_may_invite(database, policy_of(settings)),
            may_press=_may_press(database, clock),
            unencrypted=phrases(settings.tenant.language)("matrix-unencrypted"),
        )
    except AccountError as error:
        raise ConfigError(f"Matrix: {error}.") from error
    except ImportError as error:
        raise ConfigError(
            f'matrix.encryption = "{settings.matrix.encryption}" needs more than is installed ({error.name}). '
            "Install it: pip install 'merk[matrix]'; or set it to \"off\"."
        ) from error


def _may_invite(database: Database, policy: Policy) -> MayInvite:
    async def may_invite(identity: str) -> bool:
        async with database.read() as connection:
            user = await people.find(connection, identity)
        verdict, _ = judge(policy, identity, user, in_private=True)
        return verdict is Verdict.ADMIT

    return may_invite


def _may_press(database: Database, clock: Clock) -> MayPress:
    async def may_press(identity: str, token: str) -> bool:
        async with database.read() as connection:
            user = await people.find(connection, identity)
            pending = await confirmations.find(connection, token)
        if user is None or pending is None:
            return False
        is_open = pending.claimed_by is None and pending.expires_at > to_ms(clock.now())
        return is_open and pending.user_id == user.id

    return may_press
