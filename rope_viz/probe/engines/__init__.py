"""Scripts that load a probe by one engine's package, in a process of an environment that has it.

Each imports nothing else. It reads one JSON object from standard input (folder, prompts, overrides, longest) and writes
one as the last line of standard output: the release, and for every prompt the log-probability of each token but the
first.
"""
