// One vis-network instance per page, fed with deltas.
specviz.tree = (component) => {
  const { parentElement: root, data } = component;
  const state = (root.__specviz ??= newTree(root));
  const known = specviz.take(state, data, component);
  paintTheme(root, state);
  if (known !== null) {
    const edges = [];
    const nodes = data.items.map(({ parent, status, title, ...node }) => {
      const look = specviz.looks[status];
      if (parent >= 0) {
        edges.push({
          id: node.id, from: parent, to: node.id, dashes: look.dashes,
          color: { color: look.colour, opacity: look.dashes ? 0.75 : 0.5, hover: look.colour },
        });
      }
      const inside = look.filled ? look.colour : state.background;
      const colour = { background: inside, border: look.colour };
      state.endX = Math.max(state.endX, node.x);
      state.endY = Math.max(state.endY, node.y);
      return {
        ...node, status, title: specviz.element("div", "tip", title),
        color: { ...colour, highlight: colour, hover: colour },
        shapeProperties: { borderDashes: look.dashes },
      };
    });
    state.edges.update(edges);
    state.nodes.update(nodes);
    if (state.follow) state.goToEnd();
  }
  root.querySelector(".network").classList.toggle("empty", state.nodes.length === 0);
  drawLegend(root, data.counts);
  return specviz.whenGone(root, () => {
    clearTimeout(state.askAgain);
    state.network.destroy();
    delete root.__specviz;
  });
};

function newTree(root) {
  const box = root.querySelector(".network");
  const state = { nodes: new vis.DataSet(), edges: new vis.DataSet(), have: 0, endX: 0, endY: 0, follow: true };
  state.network = new vis.Network(box, { nodes: state.nodes, edges: state.edges }, specviz.networkOptions);
  state.reset = () => {
    state.edges.clear();
    state.nodes.clear();
    state.follow = true;
    state.endX = state.endY = 0;
  };
  state.goToEnd = () => {
    const scale = 0.85;
    // The newest token stands at four fifths of the width; a tree that still fits is shown from its start.
    const x = Math.max(state.endX - (0.3 * box.clientWidth) / scale, (0.5 * box.clientWidth - 60) / scale);
    state.network.moveTo({ position: { x, y: Math.min(state.endY, 240) / 2 + 10 }, scale });
  };
  const release = () => (state.follow = false);
  state.network.on("dragStart", release);
  state.network.on("zoom", release);
  state.network.on("doubleClick", () => {
    state.follow = true;
    state.goToEnd();
  });
  box.__specviz = state; // tests and tools/screenshot.py look at the network through this
  return state;
}

function paintTheme(root, state) {
  const text = specviz.css(root, "--st-text-color", "#31333F");
  state.background = specviz.css(root, "--st-background-color", "#ffffff");
  if (text === state.text) return;
  const repaint = state.text !== undefined;
  state.text = text;
  state.network.setOptions({ nodes: { font: { color: text } } });
  if (!repaint) return;
  state.nodes.update(
    state.nodes.get().filter((n) => !specviz.looks[n.status].filled).map((n) => {
      const colour = { background: state.background, border: n.color.border };
      return { id: n.id, color: { ...colour, highlight: colour, hover: colour } };
    }),
  );
}

function drawLegend(root, counts) {
  const legend = root.querySelector(".legend");
  if (!legend.childElementCount) {
    for (const [status, look] of Object.entries(specviz.looks)) {
      const entry = specviz.element("span", "entry");
      entry.title = look.meaning;
      const glyph = specviz.element("span", "glyph", look.glyph);
      glyph.style.color = look.colour;
      const count = specviz.element("b", "count");
      count.dataset.status = status;
      entry.append(glyph, specviz.element("span", "", status), count);
      legend.append(entry);
    }
  }
  for (const count of legend.querySelectorAll(".count")) count.textContent = counts[count.dataset.status] ?? 0;
}
