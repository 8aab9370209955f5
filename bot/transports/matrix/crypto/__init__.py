"""End-to-end encryption. Nothing outside this folder imports nio; it is imported only where encryption is on."""
