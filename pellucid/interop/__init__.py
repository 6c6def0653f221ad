"""Models that travel: to and from Hugging Face's Marian format, and to CTranslate2."""
