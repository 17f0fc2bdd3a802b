// Rounds as bands behind the tree, with a heading each. Only rounds in view are drawn.
const HEAD = 22; // pixels

function drawBands(state, canvas) {
  const { left, right, top, bottom, scale } = viewOf(state);
  for (const round of roundsBetween(state, left, right)) {
    const [from, to] = bandOf(round);
    const chosen = round.round === state.memory.round;
    if (!chosen && (round.round % 2 || (to - from) * scale < 6)) continue;
    canvas.save();
    canvas.globalAlpha = chosen ? 0.1 : 0.045;
    canvas.fillStyle = chosen ? state.colours.primary : state.colours.text;
    canvas.fillRect(from, top, to - from, bottom - top);
    canvas.restore();
  }
}

// Between an open block and the chips after it there may be a long line: label it.
function drawGaps(state, canvas) {
  const { left, right, scale } = viewOf(state);
  canvas.save();
  canvas.textAlign = "center";
  canvas.fillStyle = state.colours.text;
  canvas.globalAlpha = 0.7;
  canvas.font = `${12 / scale}px ${state.colours.face}`;
  for (const [block, x] of state.chips) {
    if (!block || state.chips.has(block - 1)) continue;
    const [from, to] = [Math.max(left, rightEnd(state, block - 1)), Math.min(right, x - CHIP.width / 2)];
    if ((to - from) * scale > 220) canvas.fillText("folded rounds follow →", (from + to) / 2, -8 / scale);
  }
  canvas.restore();
}

// The headings are above the nodes, at the top of the box, in screen pixels.
function drawHeads(state, canvas) {
  const view = viewOf(state);
  const { left, right, top, scale } = view;
  if (!state.rounds.length) return;
  canvas.save();
  canvas.translate(left, top);
  canvas.scale(1 / scale, 1 / scale);
  canvas.globalAlpha = 0.9;
  canvas.fillStyle = state.colours.background;
  canvas.fillRect(0, 0, (right - left) * scale, HEAD);
  canvas.textBaseline = "middle";
  for (const round of roundsBetween(state, left, right)) drawHead(state, canvas, round, view);
  canvas.restore();
}

function drawHead(state, canvas, round, { left, right, scale }) {
  const [from, to] = bandOf(round).map((x) => (x - left) * scale);
  const chosen = round.round === state.memory.round;
  canvas.globalAlpha = chosen ? 0.18 : 0.09;
  canvas.fillStyle = chosen ? state.colours.primary : state.colours.text;
  if (chosen || (round.round % 2 === 0 && to - from >= 6)) canvas.fillRect(from, 0, to - from, HEAD);
  // A heading stays in view as long as its band, with as much text as there is room for.
  const start = Math.max(from, 0);
  const room = Math.min(to, (right - left) * scale) - start - 12;
  canvas.globalAlpha = chosen ? 1 : 0.8;
  canvas.font = `${chosen ? 600 : 400} 11px ${state.colours.face}`;
  canvas.fillStyle = state.colours.text;
  const fits = headsOf(round).find((head) => canvas.measureText(head).width <= room);
  const far = fits === undefined && round.round % 10 === 9 && 10 * (to - from) > 40 && start + 30 < (right - left) * scale;
  if (fits || far) canvas.fillText(fits ?? round.round + 1, start + 6, HEAD / 2 + 0.5);
}

// The possible headings, longest first.
function headsOf({ round, drafted, accepted, tested }) {
  const number = round + 1;
  if (!drafted) return [`round ${number} · no draft`, `${number}`];
  if (!tested) return [`round ${number} · drafted ${drafted}`, `round ${number}`, `${number}`];
  return [`round ${number} · ${accepted}/${drafted} kept`, `${number} · ${accepted}/${drafted}`, `${number}`];
}

const bandOf = ({ from, to }) => [(from - 0.5) * specviz.treeLayout.column, (to + 0.5) * specviz.treeLayout.column];

function viewOf(state) {
  const { x: left, y: top } = state.network.DOMtoCanvas({ x: 0, y: 0 });
  const { x: right, y: bottom } = state.network.DOMtoCanvas({ x: state.box.clientWidth, y: state.box.clientHeight });
  return { left, top, right, bottom, scale: state.network.getScale() };
}

// The round at this x, by binary search: rounds are ordered by their columns.
function roundAt(state, x) {
  let [low, high] = [0, state.rounds.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bandOf(state.rounds[middle])[1] > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The open rounds that overlap left … right.
function* roundsBetween(state, left, right) {
  for (let at = roundAt(state, left); at < state.rounds.length; at += 1) {
    const [from, to] = bandOf(state.rounds[at]);
    if (from > right) return;
    if (isFolded(state, at)) at = (blockOf(at) + 1) * BLOCK - 1;
    else if (to > left) yield state.rounds[at];
  }
}
