"""publish: records which saves of a training job are complete, and finds the latest."""

__version__ = "0.1.0"
