"""Assembly of a configuration's embedding, public files, bundle and calibration."""
