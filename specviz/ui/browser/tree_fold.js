// Older rounds are folded, a block of rounds into one chip, so that a long run stays readable and fast to draw.
//
// Positions: an open round is always at its own columns, which never change. The chips of neighbouring folded blocks are
// packed at the right end of the columns of these blocks. Each round of a block has at least one token, so a block's
// columns are wider than a chip: a row of chips lies within the columns of its own blocks, and nothing overlaps,
// whichever blocks are open. An opened block is back at its own columns; the chips before it move to its left end, and
// those after it stay.
//
// Rounds are folded automatically only while the view follows the end, so that a moved view is not disturbed. A block
// that the user has opened stays open until "Fold older rounds".
const BLOCK = 20; // rounds
const OPEN = 40; // the newest rounds, which never fold
const CHIP = { width: 196, pitch: 232 };

const blockOf = (round) => Math.floor(round / BLOCK);
const chipId = (block) => "chip:" + block;
const isFolded = (state, round) => state.memory.folded.has(blockOf(round));
const foldable = (state) => Math.max(0, blockOf(state.rounds.length - OPEN));

// Fold the rounds that have become old since the last call.
function foldOlder(state) {
  const blocks = [];
  for (; state.memory.foldedTo < foldable(state); state.memory.foldedTo += 1) blocks.push(state.memory.foldedTo);
  fold(state, blocks);
}

// Fold all old rounds, also opened ones.
function foldAll(state) {
  state.memory.foldedTo = foldable(state);
  fold(state, [...Array(foldable(state)).keys()]);
  const { x, y } = state.network.getViewPosition();
  const chip = state.chips.get(blockOf(roundAt(state, x)));
  if (chip !== undefined && !state.follow) state.network.moveTo({ position: { x: chip, y } });
}

function fold(state, blocks) {
  const news = blocks.filter((block) => !state.memory.folded.has(block));
  if (!news.length) return;
  const ids = news.flatMap((block) => idsOf(state, block));
  news.forEach((block) => state.memory.folded.add(block));
  atOnce(state, () => {
    state.edges.remove(ids);
    state.drawn.remove(ids);
    placeChips(state);
    drawChoice(state);
  });
}

function unfold(state, block) {
  if (!state.memory.folded.delete(block)) return;
  atOnce(state, () => {
    drawNodes(state, state.nodes.get(idsOf(state, block)));
    placeChips(state);
    drawChoice(state); // it may have been chosen while it was folded
  });
}

// The user has clicked a chip: its right end stays at its place on the screen, and the block opens to the left.
function openChip(state, block) {
  const { x, y } = state.network.getViewPosition();
  const shift = rightEnd(state, block) - (state.chips.get(block) + CHIP.pitch / 2);
  release(state);
  unfold(state, block);
  state.network.moveTo({ position: { x: x + shift, y } });
}

const roundsOf = (state, block) => state.rounds.slice(block * BLOCK, (block + 1) * BLOCK);
const idsOf = (state, block) => roundsOf(state, block).flatMap((round) => [...round.ids]);
const rightEnd = (state, block) => (state.rounds[block * BLOCK + BLOCK - 1].to + 0.5) * specviz.treeLayout.column;

// The left end of the tree: its first token, or the chip of the first block.
const leftEnd = (state) => (state.chips.has(0) ? state.chips.get(0) - CHIP.width / 2 : 0);

// The start of an edge: the node itself, or the chip into which it is folded.
function standIn(state, id) {
  const node = state.nodes.get(id);
  return node && isFolded(state, node.round) ? chipId(blockOf(node.round)) : id;
}

// Pack all chips and connect each block to the one before it. The cost grows with blocks, not nodes.
function placeChips(state) {
  const places = new Map();
  let right;
  for (let block = blockOf(state.rounds.length); block >= 0; block -= 1) {
    if (!state.memory.folded.has(block)) {
      right = undefined;
      continue;
    }
    right ??= rightEnd(state, block);
    places.set(block, right - CHIP.pitch / 2);
    right -= CHIP.pitch;
  }
  const before = state.chips;
  state.chips = places;
  const gone = [...before.keys()].filter((block) => !places.has(block));
  const moved = [...places.keys()].filter((block) => before.get(block) !== places.get(block));
  state.edges.remove(gone.map(chipId));
  state.drawn.remove(gone.map(chipId));
  put(state, moved.map((block) => drawnChip(state, block)));
  const joined = new Set([...gone, ...moved].flatMap((block) => [block, block + 1]));
  state.edges.update([...joined].flatMap((block) => edgesInto(state, block)));
}

function edgesInto(state, block) {
  const first = state.rounds[block * BLOCK];
  const nodes = first ? state.nodes.get([...first.ids]).filter((node) => node.index === first.from && node.parent >= 0) : [];
  if (!state.memory.folded.has(block)) {
    return nodes.filter((node) => isShown(state, node)).map((node) => drawnEdge(state, node));
  }
  const color = { color: state.colours.text, opacity: 0.35 };
  return nodes.slice(0, 1).map((node) => ({
    id: chipId(block), from: standIn(state, node.parent), to: chipId(block), dashes: [2, 5], color,
  }));
}

function drawnChip(state, block) {
  const { text, background, primary } = state.colours;
  const rounds = roundsOf(state, block);
  const sum = (what) => rounds.reduce((total, round) => total + round[what], 0);
  const tested = sum("tested");
  const rate = tested ? `${Math.round((100 * sum("accepted")) / tested)} %` : "n/a";
  const tokens = rounds.at(-1).to - rounds[0].from + 1;
  const colour = { background: mixed(background, text, 0.06), border: mixed(background, text, 0.35) };
  const hover = { background: mixed(background, primary, 0.12), border: primary };
  return {
    id: chipId(block), shape: "box", x: state.chips.get(block), y: 0, borderWidth: 1, margin: 9,
    label: `rounds ${rounds[0].round + 1}–${rounds.at(-1).round + 1}\n${tokens} tokens · ${rate} accepted`,
    title: specviz.element("div", "tip", "Click to open these rounds."),
    widthConstraint: CHIP.width - 18, color: { ...colour, highlight: colour, hover },
    shapeProperties: { borderRadius: 8, borderDashes: false }, font: { size: 12 },
  };
}
