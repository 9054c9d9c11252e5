"""Streamlit components with JavaScript of our own: knobs, charts, clocks, copy buttons, and what moves them."""
