"""
redis-py's own tests of its two lock classes, run against Lock and AsyncLock.

They are in redis-py's source distribution only: fetch.py gets them, and .ci/run calls it. modules.py imports them as
they are, and changes nothing but the class that they test. clients.py stands in for their conftest, and leads to
private servers. test_lock.py, test_async_lock.py and test_cache_lock.py are what pytest collects.
"""
