"""
Django's own tests of django.tasks, run against RedisBackend.

They are in Django's source distribution only: fetch.py gets them, and .ci/run calls it. modules.py imports them as
they are, and changes nothing but the backends that their settings name. test_tasks.py is what pytest collects.
"""
