"""
The HTTP API of chats and mailboxes, below /api/: async views, JSON in and out, errors as problem details.

A view reads its fields (fields.py), calls a service once or twice, and shapes the answer (shapes.py). Who may ask and
what an error looks like is the same for all (endpoints.py, authentication.py, problems.py).
"""
