"""The Streamlit side: controls made from knobs, the chart, the session and the server."""
