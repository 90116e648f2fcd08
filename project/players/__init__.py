"""
The places where Fake Game is played. A game server writes a log, and the site counts its lines by the places of
their addresses.

geography.py   the places of addresses; made up, and imported like any other table
crowd.py       the lines of the log, more in the local evening than at night
gamelog.py     the files: one for each past day, and one that grows
gameserver.py  the process that writes them; like a real game server, it knows nothing of Django and Redis
demo.py        data that are created before the site starts
views.py       a page of the counts
"""
