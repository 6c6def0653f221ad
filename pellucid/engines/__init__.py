"""Engines: who finds the translations, our own search or CTranslate2, and how one is chosen."""
