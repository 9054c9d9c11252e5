"""RoPE Viz: what rotary position embedding does, computed exactly."""

from rope_viz.spec import RopeSpec, Scaling

__all__ = ["RopeSpec", "Scaling"]
__version__ = "0.1.0"
