"""The kinds of memory, one folder each: logic, queries and prompt text together."""
