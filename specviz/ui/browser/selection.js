// The token that is looked at, the same one in tree, text and inspector. Whoever is clicked tells the others at once;
// the server hears of it through the component's state and answers with the detail.
specviz.chosen = { run: undefined, id: null, at: 0 };
specviz.choosers = new Set();

// Registers `listener(run, id)` for as long as `root` is in the page.
specviz.onChoice = (root, listener) => {
  const entry = { root, listener };
  specviz.choosers.add(entry);
  return () => specviz.choosers.delete(entry);
};

// A person has chosen a node, or none. `component` is the one in which it happened.
specviz.choose = (component, run, id) => {
  if (specviz.chosen.run === run && specviz.chosen.id === id) return;
  specviz.chosen = { run, id, at: Date.now() };
  component.setStateValue("selected", { ...specviz.chosen });
  for (const { listener } of specviz.choosers) listener(run, id);
};

// The server's view of it, which wins where the browser has none: after a reload, or on another page of the app.
specviz.chosenIs = (run, id) => {
  if (specviz.chosen.run === run || id === null || id === undefined) return;
  specviz.chosen = { run, id, at: 0 };
  for (const { listener } of specviz.choosers) listener(run, id);
};

// What the inspector shows of it, for whoever wants to draw more of it.
specviz.detail = null;
document.addEventListener("specviz-detail", ({ detail }) => (specviz.detail = detail));
