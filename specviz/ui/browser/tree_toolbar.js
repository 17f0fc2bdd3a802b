// The tools above the tree, and the legend below it, which is also a filter.
const HINT =
  "Click a token to see its decision. Drag to move, scroll to zoom, double-click to follow the newest token. " +
  "Size: entropy. Fill: acceptance probability.";

function buildTools(state) {
  const tool = (text, title, act) => {
    const made = specviz.element("button", "tool", text);
    Object.assign(made, { type: "button", title, onclick: act });
    return made;
  };
  const number = specviz.element("input", "number");
  Object.assign(number, { type: "number", min: 1, step: 1, onchange: () => jumpTo(state, Math.round(number.value || 1) - 1) });
  number.setAttribute("aria-label", "Round");
  const before = tool("‹", "Previous round", () => jumpTo(state, presentRound(state) - 1));
  const after = tool("›", "Next round", () => jumpTo(state, presentRound(state) + 1));
  before.setAttribute("aria-label", "Previous round");
  after.setAttribute("aria-label", "Next round");
  const of = specviz.element("span", "of");
  const alternatives = tool("Alternatives", "Show other tokens that were possible at the chosen position", () => {
    state.memory.alternatives = !state.memory.alternatives;
    drawGhosts(state);
    drawTools(state);
  });
  const foldThem = tool("Fold older rounds", "Fold all but the newest rounds", () => (foldAll(state), drawTools(state)));
  const whole = tool("Whole tree", "Fit the whole tree into view", () => showWhole(state));
  const follow = tool("Follow", "Keep the newest token in view", () => {
    if (!state.follow) return followEnd(state);
    release(state);
    drawTools(state);
  });
  const rounds = specviz.element("span", "rounds");
  rounds.append(before, "Round", number, of, after);
  const rest = specviz.element("span", "rest");
  rest.append(alternatives, foldThem, whole, follow);
  const section = state.root.querySelector(".tree");
  section.setAttribute("aria-label", "Token tree");
  section.prepend(specviz.heading("Token tree"));
  const bar = state.root.querySelector(".tools");
  bar.setAttribute("role", "toolbar");
  bar.setAttribute("aria-label", "Tools of the token tree");
  bar.replaceChildren(rounds, rest);
  state.tools = { number, of, before, after, alternatives, fold: foldThem, follow, legend: buildLegend(state) };
  state.root.querySelector(".hint").textContent = HINT;
}

function buildLegend(state) {
  const legend = state.root.querySelector(".legend");
  legend.setAttribute("role", "group");
  legend.setAttribute("aria-label", "Which tokens the tree shows");
  const entries = Object.entries(specviz.looks).map(([status, look]) => {
    const entry = specviz.element("button", "entry");
    Object.assign(entry, { type: "button", title: `${look.meaning}. Click to hide or show.`, onclick: () => toggle(state, [status]) });
    const glyph = specviz.element("span", "glyph", look.glyph);
    glyph.style.setProperty("--colour", look.colour);
    glyph.setAttribute("aria-hidden", "true");
    const count = specviz.element("b", "count");
    entry.append(glyph, specviz.element("span", "name", status), count);
    return { entry, status, count };
  });
  const all = specviz.element("button", "entry all", "all");
  Object.assign(all, { type: "button", title: "Show all tokens again", onclick: () => toggle(state, [...state.memory.off]) });
  legend.replaceChildren(...entries.map(({ entry }) => entry), all);
  return { entries, all };
}

// Hide the nodes of these statuses, or show them again.
function toggle(state, statuses) {
  const { off } = state.memory;
  for (const status of statuses) off.delete(status) || off.add(status);
  atOnce(state, () => {
    drawNodes(state, state.nodes.get({ filter: (node) => statuses.includes(node.status) }));
    drawChoice(state);
  });
  drawTools(state);
}

// Updates tools and legend. Called at every message, so it changes only what differs.
function drawTools(state) {
  const { tools, memory } = state;
  const [last, present] = [state.rounds.length, presentRound(state) + 1];
  const set = (element, what, value) => element[what] === value || (element[what] = value);
  const press = (element, on) => element.ariaPressed === String(on) || (element.ariaPressed = String(on));
  set(tools.of, "textContent", `of ${last}`);
  set(tools.number, "max", String(last));
  if (!tools.number.matches(":focus") || !state.follow) set(tools.number, "value", last ? String(present) : "");
  set(tools.number, "disabled", !last);
  set(tools.before, "disabled", present <= 1);
  set(tools.after, "disabled", present >= last);
  set(tools.fold, "disabled", memory.folded.size >= foldable(state));
  press(tools.alternatives, memory.alternatives);
  press(tools.follow, state.follow);
  for (const { entry, status, count } of tools.legend.entries) {
    set(count, "textContent", String(state.counts[status] ?? 0));
    press(entry, !memory.off.has(status));
  }
  set(tools.legend.all, "hidden", memory.off.size === 0);
}
