"""What only a public server needs: limits per visitor, queues, processes with limits, routes."""
