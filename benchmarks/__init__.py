"""Side by side with what people would otherwise use; run with `python -m`."""
