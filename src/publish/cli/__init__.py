"""The program: flags in, words and an exit status out."""
