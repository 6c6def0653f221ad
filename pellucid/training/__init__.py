"""From a config and two text files to a model: the loop, its memory and its journal."""
