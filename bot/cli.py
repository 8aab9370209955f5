"""The command line: parse, call, answer. Heavy parts are imported by the command that needs them."""

import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import structlog
import typer

from bot import logs
from bot.config import ConfigError, load
from bot.errors import CommandError
from bot.lock import own
from memory.instants import SystemClock

app = typer.Typer(
    name="merk",
    help="A self-hosted assistant that remembers across chats, and forgets for real.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
Config = Annotated[Path | None, typer.Option("--config", help="Configuration file.", show_default=False)]


def main() -> None:
    """Run, and turn what cannot be done into a sentence: exit code 2 = configuration, 1 = anything else."""
    try:
        logs.configure(level=os.environ.get("MERK_LOG", "ERROR"))
        app()
    except CommandError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the one place that speaks for all commands
        sys.exit(error.code)
    except Exception as error:  # noqa: BLE001 - a person never sees a traceback; MERK_LOG=DEBUG shows it
        structlog.get_logger(__name__).debug("cli.failed", exc_info=True)
        said = f"That did not work ({type(error).__name__}: {error}). See `merk doctor`; MERK_LOG=DEBUG says where."
        print(said, file=sys.stderr)  # noqa: T201 - see above
        sys.exit(1)


def _run(work: Coroutine[Any, Any, None], loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
    with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=loop) as runner:
        runner.run(work)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"Merk {version('merk')}")
        raise typer.Exit


@app.callback()
def merk(
    _version: Annotated[
        bool, typer.Option("--version", help="Say which Merk this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def chat(
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a reply event, for scripts.")] = False,
) -> None:
    """Talk to Merk in this terminal."""
    from bot import chat as terminal  # noqa: PLC0415

    _run(terminal.chat(load(config), as_json=as_json))


@app.command()
def run(config: Config = None) -> None:
    """Serve every configured transport."""
    from bot import serve  # noqa: PLC0415

    _run(serve.serve(load(config)), serve.new_loop)


@app.command()
def init(config: Config = None) -> None:
    """Set Merk up, step by step."""
    from rich.console import Console  # noqa: PLC0415

    from bot.admin.setup import default_target, set_up  # noqa: PLC0415

    set_up(config or default_target(), Console())


@app.command()
def doctor(
    config: Config = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only what is wrong.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also where a check failed.")] = False,
) -> None:
    """Say what works, what does not, and which command mends it; exit code 1 = something is wrong."""
    from bot.doctor import examine_at_once  # noqa: PLC0415

    if verbose:
        logs.configure(level="DEBUG")
    try:
        settings = load(config)
    except ConfigError as error:
        typer.echo(f"WRONG configuration: {error}\n      → merk init, or an editor")
        sys.exit(error.code)
    found = examine_at_once(settings)
    for health in found:
        if health.ok and not quiet:
            typer.echo(f"ok    {health.name}: {health.detail}")
        elif not health.ok:
            typer.echo(f"WRONG {health.name}: {health.detail}\n      → {health.remedy}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if all(health.ok for health in found) else 1)  # a thread that is stuck would keep us


@app.command()
def approve(code: str, config: Config = None) -> None:
    """Let in the stranger who was given this code; Merk may be running."""
    from bot.admin import keeping  # noqa: PLC0415

    user = asyncio.run(keeping.approve(load(config), code))
    typer.echo(f"{user.name} may talk to Merk now.")


@app.command()
def grant(
    person: Annotated[str, typer.Argument(help="A name, or an address such as telegram:42.")],
    name: Annotated[str, typer.Argument(metavar="GRANT", help="For example view:sensitive.")],
    revoke: Annotated[bool, typer.Option("--revoke", help="Take it back.")] = False,
    config: Config = None,
) -> None:
    """Let a person do more than their role allows; Merk may be running."""
    from bot.admin import granting  # noqa: PLC0415

    typer.echo(asyncio.run(granting.grant(load(config), person, name, revoke=revoke)))


@app.command()
def backup(file: Path, config: Config = None) -> None:
    """Write everything into one file; Merk may be running."""
    from bot.admin.backup import back_up  # noqa: PLC0415

    back_up(load(config).tenant.data_dir / "merk.db", file, SystemClock())
    typer.echo(f"Written to {file}.")


@app.command("restore")
def restore_(file: Path, config: Config = None) -> None:
    """Put a backup in the place of the data; Merk must be stopped."""
    from bot.admin.backup import restore  # noqa: PLC0415

    data_dir = load(config).tenant.data_dir
    with own(data_dir, "restore"):
        replaced = asyncio.run(restore(file, data_dir, SystemClock()))
    kept = f" What was there before is in {replaced} and goes in a week." if replaced else ""
    typer.echo(f"Restored.{kept} The next start makes the index anew.")


@app.command()
def reindex(config: Config = None) -> None:
    """Make every index anew from the database; Merk must be stopped."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from bot.admin import keeping  # noqa: PLC0415

    settings = load(config)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Indexing", total=None)
        work = keeping.reindex(settings, lambda done, total: bar.update(task, completed=done, total=total))
        count = asyncio.run(work)
    typer.echo(f"{count} summaries indexed.")


@app.command()
def recall(
    question: str,
    user: Annotated[str, typer.Option(help="Who asks, for example telegram:42.")],
    explain: Annotated[bool, typer.Option("--explain", help="Also why: each candidate with its figures.")] = False,
    config: Config = None,
) -> None:
    """Show what memory would find for a question in a private chat; Merk may be running."""
    from bot.admin import recalling  # noqa: PLC0415

    typer.echo(asyncio.run(recalling.recall(load(config), user, question, explain=explain)))


@app.command()
def export(
    user: Annotated[str, typer.Option(help="Whose data, for example telegram:42.")],
    to: Annotated[Path, typer.Option(help="Folder to write into.")] = Path(),
    config: Config = None,
) -> None:
    """Hand over everything of one person, as JSON and Markdown; Merk may be running."""
    from bot.admin import keeping  # noqa: PLC0415

    for written in asyncio.run(keeping.export(load(config), user, to)):
        typer.echo(str(written))


@app.command()
def erase(
    user: Annotated[str | None, typer.Option(help="Everything of this person, for example telegram:42.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Every chat of everybody; facts stay.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: Config = None,
) -> None:
    """Erase for good, and print the receipt; Merk must be stopped."""
    from bot.admin import keeping  # noqa: PLC0415

    if (user is None) == (not history):
        raise typer.BadParameter("name either --user or --history")
    receipt, is_done = asyncio.run(keeping.erase(load(config), user, lambda asked: yes or _agrees(asked)))
    typer.echo(receipt)
    if not is_done:
        sys.exit(1)


def _agrees(asked: str) -> bool:
    """Ask inside an event loop, whose own handler would not hear the first Ctrl-C."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(asked)
    finally:
        signal.signal(signal.SIGINT, former)


@app.command()
def retention(
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count; Merk may be running.")] = False,
) -> None:
    """Delete what is too old, as Merk does by itself once a day; Merk must be stopped."""
    from bot.admin import keeping  # noqa: PLC0415

    counts = asyncio.run(keeping.retain(load(config), dry_run=dry_run))
    width = max(len(name) for name, _ in counts.lines)
    typer.echo("Would go now:" if dry_run else "Gone:")
    for name, count in counts.lines:
        typer.echo(f"  {name:<{width}}  {count}")


token = typer.Typer(help="Tokens with which programs read telemetry; Merk may be running.", no_args_is_help=True)
app.add_typer(token, name="token")


@token.command()
def create(
    grant: Annotated[list[str], typer.Option(help="What it may, for example view:telemetry; may be repeated.")],
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    days: Annotated[int | None, typer.Option(help="After so many days it holds no more.", min=1, max=3650)] = None,
    config: Config = None,
) -> None:
    """Make a token and show it, for the only time."""
    from bot.admin import tokens  # noqa: PLC0415

    made = asyncio.run(tokens.create(load(config), grant, name, days))
    typer.echo(made.token)
    typer.echo(f"Token {made.id}: {made.said}. It is shown this once; keep it where secrets are kept.", err=True)


@token.command("list")
def list_(config: Config = None) -> None:
    """Show which tokens there are, and what they may."""
    from bot.admin import tokens  # noqa: PLC0415

    for line in asyncio.run(tokens.listed(load(config))):
        typer.echo(line)


@token.command()
def revoke(
    number: Annotated[int, typer.Argument(help="As `merk token list` shows it.")], config: Config = None
) -> None:
    """Take a token back."""
    from bot.admin import tokens  # noqa: PLC0415

    asyncio.run(tokens.revoke(load(config), number))
    typer.echo(f"Token {number} opens nothing any more.")


observations = typer.Typer(help="What Merk noticed by itself.", no_args_is_help=True)
app.add_typer(observations, name="observations")


@observations.callback()
def _observations() -> None:
    pass


@observations.command()
def purge(
    prompt_version: Annotated[str, typer.Option(help="Of the extractor, as each observation names it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: Config = None,
) -> None:
    """Delete what one version of the extractor noticed, should it have been wrong; Merk must be stopped."""
    from bot.admin import purging  # noqa: PLC0415

    count = asyncio.run(purging.purge(load(config), prompt_version, lambda asked: yes or _agrees(asked)))
    typer.echo(f"{count} observations deleted.")


matrix = typer.Typer(help="Merk's own account on Matrix.", no_args_is_help=True)
app.add_typer(matrix, name="matrix")


@matrix.callback()
def _matrix() -> None:
    pass


@matrix.command()
def verify(config: Config = None) -> None:
    """Show what to compare when you verify Merk's device in your client; Merk may be running."""
    from bot.checks.matrix import fingerprint_lines  # noqa: PLC0415

    for line in asyncio.run(fingerprint_lines(load(config))):
        typer.echo(line)


bench = typer.Typer(help="Measure Merk; in a checkout only.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@bench.command()
def turn(
    messages: Annotated[int, typer.Option(help="The largest log; 1,000 and 10,000 are measured too.")] = 100_000,
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/turn.json.")] = False,
) -> None:
    """Time Merk's own part of a turn."""
    from bot import serve  # noqa: PLC0415

    measured = _benchmark("turn")
    sizes = sorted({size for size in (1000, 10_000) if size < messages} | {messages})
    with asyncio.Runner(loop_factory=serve.new_loop) as runner:
        _tell("turn", measured, runner.run(measured.measure(sizes)), as_json=as_json)


@bench.command("recall")
def recall_quality(
    data: Annotated[Path, typer.Option(help="Conversations in LoCoMo's format.")],
    probe: Annotated[Path | None, typer.Option(help="Facts and questions in several languages.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure how well memory finds what was said, in files that are not part of the project."""
    measured = _benchmark("recall")
    result = asyncio.run(measured.measure(data, probe))
    typer.echo(json.dumps(result, indent=2) if as_json else measured.table(result))


@bench.command()
def peers(
    data: Annotated[Path, typer.Option(help="Conversations in LoCoMo's format.")],
    beside: Annotated[
        int, typer.Option(min=0, help="Measure again beside so many messages of other people; 0 = the files alone.")
    ] = 400_000,
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/peers.json.")] = False,
) -> None:
    """Measure Merk beside what a user would otherwise take; the first run installs that into .venv-peers."""
    measured = _benchmark("peers")
    _tell("peers", measured, asyncio.run(measured.measure(data, beside)), as_json=as_json)


@bench.command()
def precision(
    data: Annotated[Path, typer.Option(help="The folder with PrecisionMemBench.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure what memory shows beyond what was asked for, in files that are not part of the project."""
    measured = _benchmark("precision")
    result = asyncio.run(measured.measure(data))
    typer.echo(json.dumps(result, indent=2) if as_json else measured.table(result))


@bench.command()
def growth(
    messages: Annotated[list[int], typer.Option(help="Sizes of the log, once each.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure recall, indexing, memory and disk as the log grows."""
    measured = _benchmark("growth")
    result = asyncio.run(measured.measure(messages))
    typer.echo(json.dumps(result, indent=2) if as_json else measured.table(result))


@bench.command()
def kill(
    count: Annotated[int, typer.Option("--count", "--kills", help="How often to kill.")] = 200,
    seed: Annotated[int, typer.Option(help="Which random points.")] = 20261130,
    network: Annotated[Literal["telegram", "matrix"], typer.Option(help="Where people talk.")] = "telegram",
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/kill*.json.")] = False,
) -> None:
    """Kill a running conversation at random points and count what was lost or answered twice."""
    measured = _benchmark("kill")
    name = "kill" if network == "telegram" else f"kill-{network}"
    _tell(name, measured, asyncio.run(measured.measure(network, count, seed)), as_json=as_json)


@bench.command()
def interference(
    count: Annotated[int, typer.Option(help="Sequences of messages, joins, moves, forgets and questions.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Which random lives.")] = 20261130,
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/interference.json.")] = False,
) -> None:
    """Look for anything that is shown to somebody who may not see it."""
    measured = _benchmark("interference")
    _tell("interference", measured, asyncio.run(measured.measure(count, seed)), as_json=as_json)


@bench.command("reminders")
def reminders_(
    count: Annotated[int, typer.Option(help="How many wait.")] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/reminders.json.")] = False,
) -> None:
    """Time a start with no reminder waiting and with many."""
    measured = _benchmark("reminders")
    _tell("reminders", measured, asyncio.run(measured.measure(count)), as_json=as_json)


@bench.command()
def context(
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/context.json.")] = False,
) -> None:
    """Count what the model is sent while ten drafts are written, with and without clean context."""
    measured = _benchmark("clean_context")
    _tell("context", measured, asyncio.run(measured.measure()), as_json=as_json)


@bench.command()
def cache(
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/cache.json.")] = False,
) -> None:
    """Bill a chat of 60 turns by exact prefixes, beside two other ways to send it."""
    measured = _benchmark("cache")
    _tell("cache", measured, asyncio.run(measured.measure()), as_json=as_json)


@bench.command("telemetry")
def telemetry_(
    events: Annotated[int, typer.Option(help="How many events there are.")] = 1_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="Also write bench/results/telemetry.json.")] = False,
) -> None:
    """Time the dashboard's questions over many events, and turns during a cleanup."""
    measured = _benchmark("telemetry")
    _tell("telemetry", measured, asyncio.run(measured.measure(events)), as_json=as_json)


def _benchmark(name: str) -> Any:
    try:
        return importlib.import_module(f"bench.{name}")
    except ImportError as error:
        raise CommandError("Benchmarks are in the repository only: clone it, then `make bench`.") from error


def _tell(name: str, measured: Any, result: dict[str, object], *, as_json: bool) -> None:
    typer.echo(measured.table(result))
    if as_json:
        target = Path("bench") / "results" / f"{name}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        typer.echo(f"written to {target}")
