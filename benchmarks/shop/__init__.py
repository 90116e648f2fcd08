"""The app of the "shop" site: tables in PostgreSQL of names that are looked up, and of rows that are cached."""
