"""What needs the ORM: fences, the writes to a row that an older holder of a lock can no longer make."""
