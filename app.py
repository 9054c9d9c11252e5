"""The entry point: `streamlit run app.py`. `rope_viz/picture/read_address.py` lists the pages."""

import os
import sys
from pathlib import Path

# A redraw multiplies only small matrices; on a busy server BLAS threads would cost more than they gain.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import streamlit as st

from rope_viz.serving import server

server.settle()
FRAME = Path(__file__).absolute().parent / "pages" / "_frame.py"

# Streamlit inserts this folder into sys.path for every run and removes it again unless it is there already. An import
# in another thread could meanwhile skip an entry and fail.
sys.path.append(str(FRAME.parent))

app = st.App(
    FRAME,
    routes=server.routes(),
    middleware=server.middleware(),
    lifespan=server.lifespan,
    exception_handlers={Exception: server.failed},
)
