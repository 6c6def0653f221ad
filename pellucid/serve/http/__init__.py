"""The routes of the HTTP interface, and the ASGI application that holds them."""
