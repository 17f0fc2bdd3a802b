"""Another page of the same app, to go to and come back from."""

import streamlit as st

st.write("Nothing runs here.")
st.page_link("app.py", label="Go back")
