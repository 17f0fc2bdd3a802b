"""The browser's half of the page: one file per component, its script and style under `ui/browser`."""
