"""Matrix: rooms, threads and reactions over the client-server API; only `crypto/` knows the library for encryption."""
