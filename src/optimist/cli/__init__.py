"""The command `optimist`: main.py finds the command, one file does each."""
