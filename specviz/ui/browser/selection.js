// The chosen token, the same in tree, text and inspector. A clicked component informs the others at once; the server gets
// the choice through the component's state and answers with the detail.
specviz.chosen = { run: undefined, id: null, at: 0 };
specviz.choosers = new Set();

// Registers `listener(run, id)`; returns the function that removes it.
specviz.onChoice = (root, listener) => {
  const entry = { root, listener };
  specviz.choosers.add(entry);
  return () => specviz.choosers.delete(entry);
};

// The user has chosen a node, or none, in `component`.
specviz.choose = (component, run, id) => {
  if (specviz.chosen.run === run && specviz.chosen.id === id) return;
  specviz.chosen = { run, id, at: Date.now() };
  component.setStateValue("selected", { ...specviz.chosen });
  for (const { listener } of specviz.choosers) listener(run, id);
};

// The server's choice, used where the browser has none: after a reload, or on another page of the app.
specviz.chosenIs = (run, id) => {
  if (specviz.chosen.run === run || id === null || id === undefined) return;
  specviz.chosen = { run, id, at: 0 };
  for (const { listener } of specviz.choosers) listener(run, id);
};

// The inspector's detail of the chosen token, for other components.
specviz.detail = null;
document.addEventListener("specviz-detail", ({ detail }) => (specviz.detail = detail));
