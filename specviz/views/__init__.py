"""Pure functions from a run's state to what a page or a report draws: graph data, text spans, figures, words.

Nothing here imports streamlit, and nothing here keeps a run.
"""
