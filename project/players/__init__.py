"""
Who plays Fake Game, and where: a game server writes a log, and the site counts its lines by the place of their
addresses.

geography.py   where which addresses live; made up, and imported as anybody's table would be
crowd.py       who plays when: lines of the log, more in the evening than at night, wherever that is
gamelog.py     the files: days that are over, and the one that grows
gameserver.py  the process that writes them; it knows nothing of Django and Redis, as a game server would
demo.py        what is there before the site starts
views.py       a page of what was counted
"""
