"""The entry: `streamlit run app.py`. Pages and navigation are in pages/_frame.py."""

import streamlit as st

from rope_viz.ui import server

app = st.App("pages/_frame.py", routes=server.routes(), middleware=server.middleware())
