// What is known about the token that is looked at. Model text enters through textContent only.
specviz.inspector = (component) => {
  const { parentElement: root, data } = component;
  const state = (root.__specviz ??= { have: 0, reset: () => root.querySelector(".inspector").replaceChildren() });
  const known = specviz.take(state, data, component);
  if (known !== null) {
    const box = root.querySelector(".inspector");
    box.replaceChildren();
    for (const item of data.items) box.append(specviz.element("pre", "facts", item.facts));
  }
  return specviz.whenGone(root, () => {
    clearTimeout(state.askAgain);
    delete root.__specviz;
  });
};
