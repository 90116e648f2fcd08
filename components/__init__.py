"""
Patterns of *Redis in Action* as a Django app. Where to look:

services/   what each pattern does: one module per pattern, the only callers of Redis
lua/        the steps that must be atomic, one script per verb (read by scripts.py)
keys/       every key, its type and who expires it;  client.py  the one door to Redis
backends/   the doors that Django opens: tasks.py (django.tasks), mail.py (EMAIL_BACKEND)
workers/    the long-running loops;  management/commands/  how they are started
views/      the chat page and the HTTP API;  people.py  who the persons of messages are
admin/      the control room;  embedded.py  the server that needs no installing
conf.py checks.py exceptions.py  settings, what is wrong with them, what can go wrong later
"""
