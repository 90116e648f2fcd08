"""
What task queues, locks, semaphores, chats and autocomplete cost, ours and others; docs/benchmarks.md says how to read
the figures.

queues.py       a program: ours against others, in turns
queue_sizes.py  a program: what things cost as a queue grows
memory.py       a program: a worker's memory over a million tasks
locks.py        a program: locks and semaphores, ours against others, in turns
chat.py         a program: chats, ours against the book's and channel layers, in turns
autocomplete.py a program: address books, ours against the book's, LIKE and the admin, in turns
market.py       a program: the book's market by three strategies, for 1 to 16 buyers

peers/        one small class per task queue: how it enqueues, its worker's command, when it is done
turns.py      one turn of one of them: fill the queue, start the worker, measure until all is acknowledged
alone.py      what only ours is asked for: the engine alone, latency, idling, I/O against a bare pool
growth.py     what is measured at one size of a queue
locking/      one small class per lock or semaphore, one turn of one of them, the tables of locks.py
chatting/     one small class per chat or channel layer, one turn of one of them, the tables of chat.py
completing/   a million names, a site that has a table of them, one turn of who looks, the tables of autocomplete.py
marketplace/  the market's goods, the strategies, the figure
crew.py       processes that begin at the same moment
server.py     the Redis server of a run, and Django beside it
bench.py      the folder that all share, marks in it, workers; what the server says of its work
report.py     the tables of queues.py; tables.py: what all reports share
"""
