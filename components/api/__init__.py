"""
The HTTP API below /api/: async views, JSON in and out, errors as problem details.

Services declare their endpoints with the classes in this package: fields of requests (fields.py), shapes of answers
(shapes.py) and operations (endpoints.py). openapi.py describes the API from these. Authentication, limits,
long-polls and problems are the same for all services.
"""
