"""
Ours against others, side by side in one run: queues.py is the program, docs/benchmarks.md says how to read it.

peers/       one small class per system: how it enqueues, its worker's command, when it is done
turns.py     one turn of one system: fill the queue, start the worker, measure until all is acknowledged
alone.py     what only ours is asked for: the engine alone, latency, idling, I/O against a bare pool
bench.py     the Redis server and the folder that all share; what the server says of its work
report.py    the figures as tables
"""
