"""Side by side with what people would otherwise use; each file prints its ratio."""
