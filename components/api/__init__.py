"""
The HTTP API below /api/: async views, JSON in and out, errors as problem details.

Services declare their endpoints with what is here: the fields of requests (fields.py), the shapes of answers
(shapes.py), and operations (endpoints.py), from which openapi.py describes the API. Authentication, throttles,
long-polls and problems are the same for all.
"""
