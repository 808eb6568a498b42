"""From a configuration to its embedding, public files, bundle and calibration."""
