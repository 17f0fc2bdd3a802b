// One vis-network instance per page, fed with deltas. `nodes` holds every node of the run; `drawn` and `edges` hold what
// is on the canvas: nodes that are neither folded nor filtered out, chips of folded rounds, and the alternatives of the
// chosen node.
specviz.tree = (component) => {
  const { parentElement: root, data } = component;
  const state = (root.__specviz ??= newTree(root));
  state.component = component;
  const known = specviz.take(state, data, component);
  paintTree(state);
  if (known !== null) atOnce(state, () => takeRows(state, data));
  specviz.chosenIs(data.run, data.selected);
  state.counts = data.counts;
  drawTools(state);
  return specviz.whenGone(root, () => {
    clearTimeout(state.askAgain);
    state.forget();
    state.network.destroy();
    delete root.__specviz;
  });
};

function newTree(root) {
  const box = root.querySelector(".network");
  const state = {
    root, box, have: 0, counts: {}, nodes: new vis.DataSet(), drawn: new vis.DataSet(), edges: new vis.DataSet(),
    get follow() { return this.memory.follow; },
    set follow(on) { this.memory.follow = on; },
  };
  state.reset = () => {
    for (const set of [state.edges, state.drawn, state.nodes]) if (set.length) set.clear();
    state.memory = treeMemory(state.run);
    Object.assign(state, { rounds: [], columns: new Map(), chips: new Map(), ghosts: [], endX: 0, endY: 0, placed: false });
  };
  state.reset();
  state.network = new vis.Network(box, { nodes: state.drawn, edges: state.edges }, specviz.networkOptions);
  state.network.canvas.frame.tabIndex = -1; // the box itself is the tab stop
  const forgetChoice = listenForChoices(state);
  listenToView(state);
  listenToKeys(state);
  // The box's colour changes with the page's theme, in an invisibly short transition: its end event reports a new theme.
  box.addEventListener("transitionend", () => paintTree(state));
  buildTools(state);
  state.network.on("beforeDrawing", (canvas) => {
    drawBands(state, canvas);
    drawGaps(state, canvas);
  });
  state.network.on("afterDrawing", (canvas) => {
    drawRing(state, canvas);
    drawHeads(state, canvas);
    rememberView(state);
  });
  state.forget = forgetChoice;
  box.__specviz = state; // for tests and tools/screenshot.py
  return state;
}

// The user's view settings outlive the component: one entry per run, as long as the page is open.
function treeMemory(run) {
  const all = (specviz.treeMemories ??= new Map());
  if (!all.has(run)) {
    all.set(run, { follow: true, off: new Set(), folded: new Set(), foldedTo: 0, alternatives: false });
    if (all.size > 8) all.delete(all.keys().next().value);
  }
  return all.get(run);
}

function takeRows(state, data) {
  const { node: facts, round: roundFacts } = specviz.treeLayout;
  for (const row of data.rounds) {
    const round = named(roundFacts, row);
    state.rounds[round.round] = Object.assign(state.rounds[round.round] ?? { ids: new Set() }, round);
  }
  const nodes = data.items.map((row) => treeNode(state, named(facts, row)));
  state.nodes.update(nodes);
  for (const node of nodes) {
    state.rounds[node.round].ids.add(node.id);
    if (!state.columns.has(node.index)) state.columns.set(node.index, new Set());
    state.columns.get(node.index).add(node.id);
    state.endX = Math.max(state.endX, node.x);
    state.endY = Math.max(state.endY, node.y);
  }
  if (state.follow) foldOlder(state);
  drawNodes(state, nodes);
  if (state.chips.size !== state.memory.folded.size) placeChips(state);
  drawChoice(state);
  if (state.follow) goToEnd(state);
  else if (!state.placed && state.memory.view) state.network.moveTo(state.memory.view);
  state.placed = true;
  state.box.classList.toggle("empty", state.nodes.length === 0);
}

const named = (names, row) => Object.fromEntries(names.map((name, i) => [name, row[i]]));
