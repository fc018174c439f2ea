"""`dragoman fetch`: the init container of engine pods whose model is downloaded."""
