"""HTTP: routes, guards before them, and what is said when something is refused."""
