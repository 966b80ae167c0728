"""Charts as files: one module a kind of answer, drawn with Matplotlib."""
