"""The book of equations: worked examples, figures and scenes. It teaches; nobody imports it."""
