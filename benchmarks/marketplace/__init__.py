"""
The market of chapters 4 and 6 of "Redis in Action", and three ways to buy without selling an item twice.

goods.py       what is in Redis, how much of it there must be, and who comes to the market
strategies.py  to list and to buy: with WATCH, with a lock on the whole market, with a lock on the item
figure.py      the curves as an SVG
"""
