"""Streamlit components with the app's own JavaScript: knobs, charts, clocks, copy buttons and the page shell."""
