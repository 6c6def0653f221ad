"""Translation over HTTP, in three rooms and a front door.

``server`` is a web server that needs no proxy before it; it knows nothing of translation. ``http``
holds the routes, ``page`` the files of the web page. The files beside this one are the service
itself: models, queues and batches, without a word of HTTP.
"""
