"""What every floor needs and none owns: errors, configs, files, seeds, devices."""
