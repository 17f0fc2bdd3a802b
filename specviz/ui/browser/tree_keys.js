// The tree by keyboard: arrow keys go from token to token, and the inspector follows.
const KEYS_HELP =
  "Token tree. Left and right arrow keys go along the text, down and up go to dropped tokens and back, " +
  "Home and End go to the first and the last token. Plus and minus zoom, F follows the newest token, Escape clears the choice.";

function listenToKeys(state) {
  state.box.tabIndex = 0;
  state.box.setAttribute("role", "application");
  state.box.setAttribute("aria-label", KEYS_HELP);
  const actions = {
    ArrowRight: () => step(state, 1), ArrowLeft: () => step(state, -1),
    ArrowDown: () => stepDown(state, 1), ArrowUp: () => stepDown(state, -1),
    Home: () => walkTo(state, spineNode(state, 0)), End: () => walkTo(state, lastOnSpine(state)),
    "+": () => zoomBy(state, 1.25), "=": () => zoomBy(state, 1.25), "-": () => zoomBy(state, 0.8),
    f: () => followEnd(state), F: () => followEnd(state), Escape: () => chooseHere(state, null),
  };
  state.box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
}

function walkTo(state, node) {
  if (!node) return;
  chooseHere(state, node.id);
  reveal(state, node.id);
}

// The nodes of one column, from the spine downwards.
const inColumn = (state, index) =>
  state.nodes.get([...(state.columns.get(index) ?? [])]).filter((n) => !state.memory.off.has(n.status)).sort((a, b) => a.lane - b.lane);
const spineNode = (state, index) => inColumn(state, index).find((node) => node.lane === 0);

function lastOnSpine(state) {
  for (let index = state.rounds.at(-1)?.to ?? -1; index >= 0; index -= 1) {
    const node = spineNode(state, index);
    if (node) return node;
  }
}

// Along the spine, or along a dropped branch; from the start of a branch back to the spine.
function step(state, by) {
  const here = state.nodes.get(chosenIn(state) ?? -1);
  if (!here) return walkTo(state, lastOnSpine(state));
  const beside = inColumn(state, here.index + by);
  const inBranch = beside.find((node) => node.lane === here.lane && node.round === here.round);
  walkTo(state, here.lane === 0 || by < 0 ? (inBranch ?? beside.find((node) => node.lane === 0)) : inBranch);
}

function stepDown(state, by) {
  const here = state.nodes.get(chosenIn(state) ?? -1);
  if (!here) return walkTo(state, lastOnSpine(state));
  const lanes = inColumn(state, here.index);
  walkTo(state, lanes[lanes.findIndex((node) => node.id === here.id) + by]);
}
