"""The outside world, each module behind one port of the domain."""
