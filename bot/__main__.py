"""`python -m bot` is `merk`."""

from bot.cli import main

main()
