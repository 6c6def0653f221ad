"""Documents of many formats translated, with everything but their text left as it is."""
