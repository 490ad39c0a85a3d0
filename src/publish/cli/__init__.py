"""The command line: flags in, messages and an exit status out."""
