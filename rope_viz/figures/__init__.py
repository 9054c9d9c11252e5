"""Specs and results turned into Plotly figures: one function per figure, one look for all."""
