"""How a table is laid out in a terminal, whatever it is of: `tables/` has one module for each kind of answer."""
