// From a row of the tree to the node that vis-network draws.
function treeNode(state, facts) {
  const { column, lane } = specviz.treeLayout;
  const title = specviz.element("div", "tip", treeTip(facts, state.rounds[facts.round].from));
  return { ...facts, label: shortLabel(facts.label), x: facts.index * column, y: facts.lane * lane, title };
}

const shortLabel = (label, longest = 12) => {
  const signs = [...label];
  return signs.length <= longest ? label : signs.slice(0, longest - 1).join("") + "…";
};

// As in specviz/views/words.py: an unknown value never looks like zero. Infinite numbers arrive as text.
specviz.number = (value, digits = 2, unit = "") => {
  if (value === null || value === undefined) return "n/a";
  if (typeof value === "string") return value;
  const [whole, part] = Math.abs(value).toFixed(digits).split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
  return (value < 0 && /[1-9]/.test(text) ? "−" : "") + text + (unit && " " + unit);
};

// The tooltip of a token, in tree and text. Rounds and positions count from 0. `scores` are the log-probabilities of draft
// and target, the acceptance probability, and the entropy.
specviz.tip = ({ label, id, status, round, position, scores: [draft, target, acceptance, entropy] }) =>
  [
    `${label}   id ${id}`,
    `${status} · round ${round + 1}, position ${position + 1}`,
    `draft log-probability   ${specviz.number(draft, 3)}`,
    `target log-probability  ${specviz.number(target, 3)}`,
    `acceptance probability  ${specviz.number(acceptance, 3)}`,
    `entropy                 ${specviz.number(entropy, 2, "bits")}`,
  ].join("\n");

function treeTip(facts, from) {
  const { label, token_id: id, status, round, index } = facts;
  const scores = [facts.draft_logprob, facts.target_logprob, facts.acceptance_prob, facts.entropy];
  return specviz.tip({ label, id, status, round, position: index - from, scores });
}

// vis-network redraws everything after each change of a set. `change` makes several; one redraw follows.
function atOnce(state, change) {
  const { emitter } = state.network.body;
  state.depth = (state.depth ?? 0) + 1;
  if (state.depth === 1) emitter.emit("_blockRedraw");
  try {
    change();
  } finally {
    state.depth -= 1;
    if (state.depth === 0) {
      emitter.emit("_allowRedraw");
      emitter.emit("_requestRedraw");
    }
  }
}

const isShown = (state, node) => !isFolded(state, node.round) && !state.memory.off.has(node.status);

// Puts these on the canvas. vis-network draws the nodes in view by bounding boxes that it measures while it draws: new or
// moved nodes would be drawn one frame late.
function put(state, items) {
  state.drawn.update(items);
  const canvas = state.network.canvas.getContext();
  for (const { id } of items) state.network.body.nodes[id].updateBoundingBox(canvas);
}

// Adds these nodes to the canvas, or removes them. One update per set, however many nodes there are.
function drawNodes(state, nodes) {
  const shown = nodes.filter((node) => isShown(state, node));
  const hidden = nodes.filter((node) => !isShown(state, node)).map((node) => node.id);
  if (hidden.length) {
    state.edges.remove(hidden);
    state.drawn.remove(hidden);
  }
  if (!shown.length) return;
  put(state, shown.map((node) => drawnNode(state, node)));
  state.edges.update(shown.filter((node) => node.parent >= 0).map((node) => drawnEdge(state, node)));
}

function drawnNode(state, node) {
  const look = specviz.looks[node.status];
  const { background, text } = state.colours;
  // The outline keeps its contrast; the fill shows the acceptance probability.
  const colour = { background: mixed(background, look.colour, node.strength), border: mixed(look.colour, text, 0.3) };
  return {
    id: node.id, label: fittingLabel(state, node.label), title: node.title, x: node.x, y: node.y, size: node.size,
    shape: look.shape, color: { ...colour, highlight: colour, hover: colour }, shapeProperties: { borderDashes: look.dashes },
  };
}

function drawnEdge(state, node) {
  const look = specviz.looks[node.status];
  const color = { color: look.colour, opacity: look.dashes ? 0.75 : 0.5, hover: look.colour };
  return { id: node.id, from: standIn(state, node.parent), to: node.id, dashes: look.dashes, color };
}

// The label cut to the width of a column.
function fittingLabel(state, label) {
  const widest = specviz.treeLayout.column - 6;
  const { pen } = state;
  if (pen.measureText(label).width <= widest) return label;
  const signs = [...label.replace(/…$/, "")];
  while (signs.length && pen.measureText(signs.join("") + "…").width > widest) signs.pop();
  return signs.join("") + "…";
}

// Reads the page's colours; a change of theme redraws everything.
function paintTree(state) {
  const text = specviz.css(state.root, "--st-text-color", "#31333F");
  const background = specviz.css(state.root, "--st-background-color", "#ffffff");
  if (text === state.text && background === state.background) return;
  const before = state.text;
  Object.assign(state, { text, background });
  state.pen ??= document.createElement("canvas").getContext("2d");
  const plain = (colour) => ((state.pen.fillStyle = "#808080"), (state.pen.fillStyle = colour), state.pen.fillStyle);
  const primary = specviz.css(state.root, "--st-primary-color", "#ff4b4b");
  const face = specviz.css(state.root, "--st-font", "sans-serif");
  state.colours = { text: plain(text), background: plain(background), primary: plain(primary), face };
  state.pen.font = `13px ${face}`;
  state.network.setOptions({ nodes: { font: { color: text, face } } });
  if (before === undefined) return;
  atOnce(state, () => {
    drawNodes(state, state.nodes.get());
    state.chips.clear();
    placeChips(state);
    drawChoice(state);
  });
}

// `share` of the second colour in the first; both are #rrggbb.
function mixed(one, other, share) {
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const [from, to] = [parts(one), parts(other)];
  return "#" + from.map((v, i) => Math.round(v + (to[i] - v) * share).toString(16).padStart(2, "0")).join("");
}
