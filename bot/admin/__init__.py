"""What an owner does from the command line, beside a running Merk or instead of it."""
