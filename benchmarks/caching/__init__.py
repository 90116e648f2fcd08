"""
What rows.py measures: rows of a table in PostgreSQL that are cached, and read.

site.py, models.py   a small production site, with two models whose rows are cached
table.py      their tables, filled
daemons.py    `manage.py cacherows`, which loads what is due, and what it does while nothing is
lateness.py   how late rows are, as somebody beside sees it
counts.py     round trips and queries of a batch, counted where they are sent
book.py       the listing of the book, built anew from its description
systems.py    who reads rows, and how
reader.py     a process for one of them
jobs.py       what that process is told to do
report.py     the tables, and the bars
"""

CACHEOPS_HERE = "BENCHMARK_CACHEOPS"  # environment variable: whether the site of this process has it
HIREDIS_AWAY = "BENCHMARK_WITHOUT_HIREDIS"  # environment variable: whether redis-py shall not find it

OURS, PLAIN, ORM, BOOK = "components", "components, without hiredis", "ORM", "book"
