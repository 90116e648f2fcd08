"""
What the task queue costs, and others beside it; docs/benchmarks.md says how to read the figures.

queues.py       a program: ours against others, in turns
queue_sizes.py  a program: what things cost as a queue grows
memory.py       a program: a worker's memory over a million tasks

peers/     one small class per system: how it enqueues, its worker's command, when it is done
turns.py   one turn of one system: fill the queue, start the worker, measure until all is acknowledged
alone.py   what only ours is asked for: the engine alone, latency, idling, I/O against a bare pool
growth.py  what is measured at one size of a queue
server.py  the Redis server of a run, and Django beside it
bench.py   the folder that all share, marks in it, workers; what the server says of its work
report.py  the tables of queues.py; tables.py: what all reports share
"""
