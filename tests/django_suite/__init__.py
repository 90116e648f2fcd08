"""
Django's own tests of django.tasks, run against RedisBackend.

They are in Django's source distribution only, which tests/upstream.py gets. test_tasks.py imports them as
they are, and changes nothing but the backends that their settings name.
"""
