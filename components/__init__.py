"""
Patterns of *Redis in Action* as a Django app. Where to look:

services/      one folder for each pattern: its public names, code, keys, Lua scripts, admin, API and worker
kit/           what the services share: clients, scripts, keys, leases, the loop of workers
control_room/  what the admin pages share;  api/  what the HTTP endpoints share;  people/  who the people are
embedded.py    a Redis server for development and tests;  testing/  the pytest plugin
cache.py tasks.py mail.py middleware.py    what settings name
conf.py checks.py exceptions               settings, system checks and errors
"""

__version__ = "0.3.0.dev0"
