"""The app of the "shop" site, with tables in PostgreSQL: names to search, and rows to cache."""
