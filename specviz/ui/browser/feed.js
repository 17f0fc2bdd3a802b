// The browser's half of the gap protocol; see specviz/views/feed.py for the server's.
const specviz = (globalThis.__specviz ??= { ready: {}, waiting: [] });

// Takes a delta. Returns the revision that was known before it, or null when there is nothing to draw.
// A delta that starts after the known revision means that messages were lost: request them, at most once per second.
specviz.take = (state, delta, component) => {
  if (state.run !== delta.run) {
    state.run = delta.run;
    state.have = 0;
    state.reset();
  }
  clearTimeout(state.askAgain);
  if (delta.from > state.have) {
    const ask = () => {
      state.asked = Date.now();
      component.setStateValue("need", { n: state.asked, rev: state.have });
      state.askAgain = setTimeout(ask, 2000);
    };
    const wait = 1000 - (Date.now() - (state.asked ?? 0));
    if (wait <= 0) ask();
    else state.askAgain = setTimeout(ask, wait);
    return null;
  }
  if (delta.to <= state.have) return null;
  const known = state.have;
  state.have = delta.to;
  return known;
};

// Streamlit also calls a component's clean-up when a newer update replaces it: tear down only what has left the page.
specviz.whenGone = (root, tearDown) => () =>
  setTimeout(() => {
    if (!(root.host ?? root).isConnected) tearDown();
  }, 0);

// Styles are sent with the library and adopted by each component that needs them.
specviz.style = (root, name) => {
  const scope = root.getRootNode();
  if (!specviz.styles?.[name] || scope.__specvizStyle === name) return;
  scope.__specvizStyle = name;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(specviz.styles[name]);
  scope.adoptedStyleSheets = [...scope.adoptedStyleSheets, sheet];
};

specviz.css = (root, name, fallback) =>
  getComputedStyle(root.host ?? root).getPropertyValue(name).trim() || fallback;

specviz.element = (tag, className, text, attributes = {}) => {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

// The heading of a component, for screen readers; the page itself has the h1.
specviz.heading = (text) => specviz.element("h2", "unseen", text);
