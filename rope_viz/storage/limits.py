"""The numeric limits of a server and of the processes that work for it; `docs/serving.md` lists them."""

COMPONENT_VALUE = 64 << 10
"""Bytes of the value that a component sends."""
JOB_MEMORY = 1 << 30
"""Bytes that a process that renders pictures may allocate after it has started (Linux)."""
JOB_REST = 200 << 20
"""Bytes allocated after a job above which its process ends, because libraries keep freed memory."""
