"""The folders in which Hugging Face's transformers keeps a Marian model, read and written."""
