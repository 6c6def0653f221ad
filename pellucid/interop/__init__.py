"""Models that travel: to and from Hugging Face's Marian format, to CTranslate2 and to ONNX."""
