"""The browser components: one file per component; scripts and styles are in `ui/browser`."""
