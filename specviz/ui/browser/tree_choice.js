// The chosen node, and the alternatives at its position.
const chosenIn = (state) => (specviz.chosen.run === state.run ? specviz.chosen.id : null);

// Returns the function that stops listening.
function listenForChoices(state) {
  state.network.on("click", ({ nodes: [id] }) => {
    if (String(id).startsWith("chip:")) {
      openChip(state, Number(id.slice(5)));
      state.openedAt = Date.now();
      drawTools(state);
    } else if (id === undefined) chooseHere(state, null);
    else if (state.nodes.get(id)) chooseHere(state, id);
    drawChoice(state); // vis-network has selected whatever was clicked
  });
  const forget = specviz.onChoice(state.root, (run, id) => {
    if (run !== state.run) return;
    drawChoice(state);
    // A choice that was restored after a reload does not move the view.
    if (id !== null && !state.choosing && specviz.chosen.at > 0) reveal(state, id);
  });
  const detailed = () => drawGhosts(state);
  document.addEventListener("specviz-detail", detailed);
  return () => {
    forget();
    document.removeEventListener("specviz-detail", detailed);
  };
}

function chooseHere(state, id) {
  state.choosing = true;
  specviz.choose(state.component, state.run, id);
  state.choosing = false;
}

function drawChoice(state) {
  const id = chosenIn(state);
  const wanted = id !== null && state.drawn.get(id) ? [id] : [];
  if (String(state.network.getSelectedNodes()) !== String(wanted)) state.network.setSelection({ nodes: wanted, edges: [] });
  drawGhosts(state);
}

function drawRing(state, canvas) {
  const id = chosenIn(state);
  const node = id === null ? null : state.nodes.get(id);
  if (!node || !isShown(state, node)) return;
  canvas.save();
  for (const [width, colour] of [[6, state.colours.background], [3, state.colours.primary]]) {
    canvas.beginPath();
    canvas.arc(node.x, node.y, node.size + 7, 0, 2 * Math.PI);
    canvas.lineWidth = width;
    canvas.strokeStyle = colour;
    canvas.stroke();
  }
  canvas.restore();
}

// Alternatives are drawn above the spine in rows of two, the most probable ones lowest. They are not nodes of the tree.
const GHOST = { across: 64, down: 30, first: 58, width: 104 };
const ghostTop = (state) => Math.min(0, ...state.ghosts.map((ghost) => ghost.y - 20));

function drawGhosts(state) {
  const id = chosenIn(state);
  const node = id === null ? null : state.nodes.get(id);
  const detail = specviz.detail;
  const wanted = state.memory.alternatives && node && isShown(state, node) && detail?.run === state.run && detail.id === id;
  const ghosts = wanted ? detail.alternatives.slice(0, 10).map((alternative, i) => ghostOf(state, node, alternative, i)) : [];
  if (JSON.stringify(ghosts) === JSON.stringify(state.ghosts)) return;
  const gone = state.ghosts.map((ghost) => ghost.id);
  state.ghosts = ghosts;
  atOnce(state, () => {
    state.edges.remove(gone);
    state.drawn.remove(gone);
    put(state, ghosts);
    if (node?.parent >= 0) state.edges.update(ghosts.map(({ id }) => ghostEdge(state, node, id)));
    makeRoom(state);
  });
}

function ghostOf(state, node, { token, p, q }, i) {
  const { text, background } = state.colours;
  const taken = shortLabel(token) === node.label;
  const border = mixed(background, text, taken ? 0.75 : 0.3);
  const colour = { background: mixed(background, text, taken ? 0.1 : 0.03), border };
  const share = p ?? q;
  return {
    id: "alt:" + i, shape: "box", borderWidth: taken ? 2 : 1, margin: 5, widthConstraint: GHOST.width, font: { size: 12 },
    label: `${shortLabel(token, 9)}  ${specviz.number(share, 2)}`, x: node.x + (i % 2 ? 1 : -1) * GHOST.across,
    y: -GHOST.first - Math.floor(i / 2) * GHOST.down,
    color: { ...colour, highlight: colour, hover: colour }, shapeProperties: { borderRadius: 5, borderDashes: taken ? false : [4, 3] },
  };
}

const ghostEdge = (state, node, id) => ({
  id, from: standIn(state, node.parent), to: id, dashes: [2, 4], width: 1, color: { color: state.colours.text, opacity: 0.25 },
});

// Moves the view up to alternatives that would be outside the box; x stays.
function makeRoom(state) {
  if (!state.ghosts.length) return;
  const { top, bottom, scale } = viewOf(state);
  const over = top + HEAD / scale - ghostTop(state);
  if (over > 0) state.network.moveTo({ position: { ...state.network.getViewPosition(), y: (top + bottom) / 2 - over } });
}
