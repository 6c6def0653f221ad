"""A web server that hostile clients may reach without a proxy before it; knows no translation.

The application behind it (``process.Application``) is any ASGI application. What follows one
request:

``starting``    a small process answers 503 until the application is loaded
``supervisor``  forks worker processes and replaces those that die
``process``     one worker: start, signals, reload, orderly end
``connection``  bytes in, bytes out: deadlines for clients that are slow to send or to read
``guard``       before any route: load, head (``checks``), key (``auth``), body (``body``)
``pauses``      what keeps the event loop from pausing
``errors``      every failure as problem JSON (RFC 9457)
``limits``      what all of these accept at most

Requests are parsed by h11, through its documented interface. Why no kept server is used:
docs/decisions.md.
"""

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder where prometheus_client adds up the metrics of several
processes. It must be set before that package is imported."""
