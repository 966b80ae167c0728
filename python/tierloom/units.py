"""Amounts that files and texts are written in, and what memory is dealt out and carried in."""

MIB = 2**20
GIB = 2**30
GB = 10**9

PAGE_BYTES = 4096
"""Base page of x86-64."""

LINE_BYTES = 64
"""Cache line: what one outstanding miss brings."""
