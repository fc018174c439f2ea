"""Downloads models into a shared cache: only missing files, resumed, verified, by one process at a time."""
