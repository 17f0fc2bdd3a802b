"""The Streamlit pages' own parts. Only this package and the page scripts import streamlit."""
