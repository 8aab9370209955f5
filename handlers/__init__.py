"""What the bot does with a message, a command or a button: `Handler = Request -> Reply`."""
