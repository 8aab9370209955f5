"""What the bot remembers; knows nothing of chats' networks, transports or models' SDKs."""
