"""What the job means: no I/O, no clock, no entropy."""
