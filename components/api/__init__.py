"""
The HTTP API below /api/: async views, JSON in and out, errors as problem details.

Services declare their endpoints with the classes in this package: shapes of requests and answers (shapes.py) and
operations (endpoints.py). requests.py checks what is asked, and openapi.py describes the API, both with msgspec.
Authentication, limits, long-polls and problems are the same for all services.
"""
