// The position of the view: it follows the newest token until the user moves it.
const SCALE = 0.85;

function listenToView(state) {
  const moved = () => {
    release(state);
    drawTools(state);
  };
  state.network.on("dragStart", moved);
  state.network.on("zoom", moved);
  state.network.on("dragEnd", () => drawTools(state));
  state.network.on("doubleClick", () => {
    // A double click on a chip opens it and must not move the view.
    if (Date.now() - (state.openedAt ?? 0) > 600) followEnd(state);
  });
}

const release = (state) => (state.follow = false);

function followEnd(state) {
  state.follow = true;
  delete state.memory.round;
  foldOlder(state);
  goToEnd(state);
  drawTools(state);
}

function goToEnd(state) {
  const { clientWidth: width, clientHeight: height } = state.box;
  // The newest token is at four fifths of the width; a tree that fits is shown from its start.
  const x = Math.max(state.endX - (0.3 * width) / SCALE, (0.5 * width - 60) / SCALE);
  const y = Math.min(restingY(state), ghostTop(state) + (0.5 * height - HEAD - 8) / SCALE);
  state.network.moveTo({ position: { x, y }, scale: SCALE });
}

// Move to a round, counted from 0, and mark its band.
function jumpTo(state, number) {
  const round = state.rounds[Math.max(0, Math.min(number, state.rounds.length - 1))];
  if (!round) return;
  release(state);
  unfold(state, blockOf(round.round));
  state.memory.round = round.round;
  const [from, to] = bandOf(round);
  const scale = Math.max(0.5, Math.min(state.network.getScale(), 1.2));
  state.network.moveTo({ position: { x: (from + to) / 2, y: restingY(state) }, scale });
  drawTools(state);
}

const restingY = (state) => Math.min(state.endY, 240) / 2 + 10;

// The round in view: the one that was jumped to, the newest one, or the one in the middle.
function presentRound(state) {
  if (state.memory.round !== undefined) return state.memory.round;
  return state.follow ? state.rounds.length - 1 : roundAt(state, state.network.getViewPosition().x);
}

// vis-network's own fit takes nodes that it has not drawn yet to be at 0, 0.
function showWhole(state) {
  release(state);
  const { clientWidth: width, clientHeight: height } = state.box;
  const [left, right] = [leftEnd(state) - 40, state.endX + 60];
  const [top, bottom] = [Math.min(ghostTop(state), -30), state.endY + 50];
  const scale = Math.min(1, width / (right - left), (height - HEAD) / (bottom - top));
  state.network.moveTo({ position: { x: (left + right) / 2, y: (top + bottom) / 2 - HEAD / 2 / scale }, scale });
  drawTools(state);
}

function zoomBy(state, factor) {
  release(state);
  state.network.moveTo({ scale: Math.max(0.05, Math.min(state.network.getScale() * factor, 4)) });
  drawTools(state);
}

// Move to a node unless it is in view already.
function reveal(state, id) {
  const node = state.nodes.get(id);
  if (!node) return;
  const hidden = isFolded(state, node.round);
  unfold(state, blockOf(node.round));
  const { left, right, top, bottom, scale } = viewOf(state);
  const [across, down] = [40 / scale, (HEAD + 20) / scale];
  const inView = left + across < node.x && node.x < right - across && top + down < node.y && node.y < bottom - 40 / scale;
  if (inView && !hidden) return;
  release(state);
  const y = Math.max(restingY(state), node.y - 100);
  state.network.moveTo({ position: { x: node.x, y }, scale: Math.max(0.5, scale) });
  drawTools(state);
}

function rememberView(state) {
  if (state.placed) state.memory.view = { position: state.network.getViewPosition(), scale: state.network.getScale() };
}
