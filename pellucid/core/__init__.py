"""The lowest floor, needed by every other one: errors, configs, files, seeds and devices."""
