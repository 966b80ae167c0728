"""One HTML file of any results: charts, their data as tables, nothing fetched from anywhere.

``reading`` finds out what the reader named, a builder a kind (``machine``, ``profile``, …, the list is
in ``kinds``) makes a section of it, ``writing`` puts the sections into ``page.html.jinja``. Charts
are specifications of Vega and Vega-Lite, whose scripts travel in the file.
"""
