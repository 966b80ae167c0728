"""Tables for a terminal: one module a kind of answer, drawn with Rich."""
