"""A web server that hostile clients may reach without a proxy before it; knows no translation.

The application behind it (``process.Application``) is any ASGI application. What follows one
request:

``starting``    a small process answers 503 until the application is loaded
``supervisor``  forks worker processes and replaces those that die
``process``     one worker: start, signals, reload, orderly end
``protocol``    bytes in, bytes out: deadlines for clients that are slow to send or to read
``guard``       before any route: load, head (``checks``), key (``auth``), body (``body``)
``pauses``      what keeps the event loop from pausing
``errors``      every failure as problem JSON (RFC 9457)
``limits``      what all of these accept at most

``protocol`` and ``process`` rely on the inside of uvicorn: on names without a promise, such as
``H11Protocol.cycle`` and ``Server.startup``. They were proven (tests/serve, and the attacks of
benchmarks/serve_hostile.py and benchmarks/serve_overload.py) with uvicorn 0.54.0 and h11 0.16.0.
Before another version is used, run those again. The parser is always h11: httptools, which uvicorn
prefers where it is installed, is never used.
"""

PROVEN_WITH = {"uvicorn": "0.54.0", "h11": "0.16.0"}
"""The versions that the claims of this package were tested with."""

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder where prometheus_client adds up the metrics of several
processes. It must be set before that package is imported."""
