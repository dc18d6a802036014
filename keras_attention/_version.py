"""The version, in a file of its own so that packaging can read it without Keras."""

__version__ = "0.4.0"
