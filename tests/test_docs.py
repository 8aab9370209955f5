"""The documents say what is there: commands, settings, folders, files, links."""

import os
import re
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from bot.cli import app
from bot.config import Settings
from handlers.commands import MENU

ROOT = Path(__file__).parents[1]
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
PAGE = 120  # lines

FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
MAKE = re.compile(r"\bmake(?: [A-Z]+=\S+)* ([a-z][a-z0-9]*)")
MERK = re.compile(r"(?<!-u )(?<![\w.-])merk (?!merk\b)([a-z][a-z-]*)([^\n|;&]*)")
PATH = re.compile(r"\b(?:bot|handlers|memory|tests|bench|deploy|docs|scripts)(?:/\w+)+\.(?:py|md|service|svg)\b")
SETTING = re.compile(r"^(?:# )?(\w+) = ", re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def code(path: Path) -> str:
    """What stands in a document as code, without the comments in it."""
    text = path.read_text(encoding="utf-8")
    blocks = [re.sub(r"(?m)(?:^|\s)#\s.*$", "", block) for block in FENCED.findall(text)]
    return "\n".join([*blocks, *INLINE.findall(FENCED.sub("", text))])


@cache
def options() -> dict[str, set[str]]:
    """The options of each command of the program; those of a group's commands together."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return {command: set(_options(group.commands[command])) for command in group.commands}


def _options(command: object) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        yield from (option for inner in command.commands.values() for option in _options(inner))
    elif isinstance(command, TyperCommand):
        yield from (option for parameter in command.params for option in parameter.opts)


# --- commands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCS, ids=name)
def test_every_make_target_in_a_document_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(MAKE.findall(code(path))) <= targets


@pytest.mark.parametrize("path", [*DOCS, ROOT / "compose.yaml", ROOT / "deploy" / "merk.service"], ids=name)
def test_every_merk_command_in_a_document_exists_with_its_options(path: Path) -> None:
    text = code(path) if path.suffix == ".md" else path.read_text(encoding="utf-8")
    for command, rest in MERK.findall(text):
        assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= options()[command]


def test_the_readme_names_the_two_commands_and_every_other_verb_is_in_contributing() -> None:
    assert {"run", "test"} <= set(MAKE.findall(code(ROOT / "README.md")))
    verbs = re.findall(r"^([a-z0-9]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(verbs) - {"help"} <= set(MAKE.findall(code(ROOT / "CONTRIBUTING.md")))


def test_the_operator_guide_names_every_command_of_the_program() -> None:
    guide = code(ROOT / "docs" / "operator-guide.md")
    assert options().keys() - {"bench"} <= {command for command, _ in MERK.findall(guide)}


def test_the_user_guide_explains_every_command_that_clients_show() -> None:
    guide = (ROOT / "docs" / "user-guide.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| /(\w+) \|", guide, re.MULTILINE) == list(MENU)


# --- settings ------------------------------------------------------------------------------------------


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> str:
    """The example's text, in an environment that sets nothing."""
    for variable in [each for each in os.environ if each.startswith(("MERK_", "XDG_"))]:
        monkeypatch.delenv(variable)
    return (ROOT / "config.example.toml").read_text(encoding="utf-8")


def leaves(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        here = f"{path}{key}"
        inner = cast("dict[str, Any]", value) if isinstance(value, dict) else None
        found |= {here: value} if inner is None else leaves(inner, f"{here}.")
    return found


def test_the_example_shows_every_key_and_no_other(example: str) -> None:
    everything = tomllib.loads(SETTING.sub(r"\1 = ", example))
    assert leaves(everything).keys() == leaves(Settings().model_dump()).keys()


def test_the_example_loads_and_what_it_shows_are_the_defaults(example: str) -> None:
    shown = tomllib.loads(example)
    defaults = leaves(Settings().model_dump(mode="json"))
    assert Settings(**shown) == Settings()
    assert leaves(shown) == {key: defaults[key] for key in leaves(shown)}


def test_what_the_example_leaves_out_has_no_default_but_the_data_directory(example: str) -> None:
    shown = leaves(tomllib.loads(example))
    left_out = {key: value for key, value in leaves(Settings().model_dump()).items() if key not in shown}
    assert left_out.pop("tenant.data_dir") == Path("~/.local/share/merk").expanduser()
    assert set(left_out.values()) == {None}
    assert "~/.local/share/merk" in example


# --- files and links -----------------------------------------------------------------------------------


def test_the_readmes_tree_is_the_one_on_disk() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^(\w+)/ {2,}\S", readme, re.MULTILINE))
    made = {"build", "dist", "data", "__pycache__"}
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."} - made
    assert told == {folder for folder in there if not folder.endswith(".egg-info")}


@pytest.mark.parametrize("path", DOCS, ids=name)
def test_every_file_that_a_document_names_is_there(path: Path) -> None:
    missing = [found for found in PATH.findall(code(path)) if not (ROOT / found).exists()]
    assert [found for found in missing if "/NAME" not in found and "/TOPIC" not in found] == []


@pytest.mark.parametrize("path", DOCS, ids=name)
def test_every_link_inside_the_repository_leads_somewhere(path: Path) -> None:
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        if anchor:
            assert anchor in headings(target), link


def headings(path: Path) -> set[str]:
    """The anchors of a document as renderers make them."""
    found = re.findall(r"^#+ (.+)$", FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in found}


def test_the_changelog_knows_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"## {project['version']} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_architecture_fits_one_page() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()) <= PAGE


def test_every_decision_is_listed_and_in_the_form_that_all_have() -> None:
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text(encoding="utf-8")
    decisions = sorted(folder.glob("[0-9]*.md"))
    for number, path in enumerate(decisions, 1):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix(f"# {number}. ")
        assert f"{number}. [{title}]({path.name})" in index
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert len(re.findall(r"^\d+\. ", index, re.MULTILINE)) == len(decisions)


@pytest.mark.parametrize("path", PICTURES, ids=name)
def test_a_picture_is_whole_and_fetches_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert set(re.findall(r"\w+://[^\s\"')]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<image|@import|@font-face|href=", text)


def test_every_picture_is_shown_in_the_readme_or_the_user_guide() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "user-guide.md"]
    shown = {
        (page.parent / link).resolve() for page in pages for link in LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert set(PICTURES) == {path for path in shown if path.suffix == ".svg"}
