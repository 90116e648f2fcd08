"""
What autocomplete.py measures: a million names, and three who look for them.

names.py      the names, in twelve scripts, and prefixes of them
site.py, urls.py, models.py   a small production site with a table of the names, two admins, and our API
database.py   the table filled, and asked by LIKE
sentinels.py  the guild directory of the book, built anew from its description
turns.py      one turn of one of them
sizes.py      what is loaded: how fast, and how many bytes it takes
report.py     the tables, and the bars
"""

DATABASE = "BENCHMARK_DATABASE"  # environment variable: the folder of a PostgreSQL's socket, if there is one
