"""The list of pages: the only place that knows them all."""

import streamlit as st

from rope_viz.ui import frame

frame.run(
    [
        st.Page("home.py", title="Home", default=True),
        st.Page("frequencies.py", title="Frequencies"),
        st.Page("scaling.py", title="Scaling"),
        st.Page("decay.py", title="Decay"),
        st.Page("kernels.py", title="Kernels"),
    ]
)
