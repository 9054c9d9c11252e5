"""The entry: `streamlit run app.py`. Pages and navigation are in pages/_frame.py."""

import os
import sys
from pathlib import Path

# A redraw is a few small matrix products; on a busy server threads of BLAS wait for each other longer than they help.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import streamlit as st

from rope_viz.ui import server

server.settle()
FRAME = Path(__file__).absolute().parent / "pages" / "_frame.py"

# Streamlit puts this folder into the path for every run and takes it out again, unless it is there: who looks for a
# module in another thread meanwhile goes past an entry, and does not find it.
sys.path.append(str(FRAME.parent))

app = st.App(FRAME, routes=server.routes(), middleware=server.middleware(), lifespan=server.lifespan)
