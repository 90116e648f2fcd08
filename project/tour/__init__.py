"""
The tour of the demo: what to try, log-ins by one click, what a purchase has set in motion, and buttons that break
things.

It exists only under `manage.py demo` with its embedded server: settings.TOUR. Whatever its buttons do is bounded and
undoes itself.
"""
