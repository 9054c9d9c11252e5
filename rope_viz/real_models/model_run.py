"""A process that runs the demo models or a GGUF model for the pages Recall and Heads."""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.kernels.measurement_process import Run
from rope_viz.real_models import TEXTS
from rope_viz.storage.limits import MODEL_RUN_MEMORY, MODEL_RUN_NICENESS
from rope_viz.storage.processes import Limits, OutOfMemoryError
from rope_viz.texts import Texts


class ModelRun(Run):
    """A run of models in a process of its own; no other measurement runs at the same time."""

    limits = Limits(memory=MODEL_RUN_MEMORY, niceness=MODEL_RUN_NICENESS)
    # Threads of NumPy's own wait for each other in a loop, which on a busy machine takes most of the time.
    variables: Mapping[str, str | None] = dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
    )
    texts: Texts = TEXTS
    group = "live"
    """Where `texts` has the sentences for too little memory and for another error."""

    def describe(self, error: Exception) -> str:
        """Return a sentence for an error of the function, or of its process."""
        if isinstance(error, OutOfMemoryError):
            return str(self.texts(f"{self.group}.memory", most=MODEL_RUN_MEMORY >> 30))
        if isinstance(error, (ValueError, OSError)):
            return str(self.texts(f"{self.group}.problem", error=error))
        return super().describe(error)
