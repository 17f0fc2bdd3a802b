// The output, one span per token. Model text enters the page through textContent only.
specviz.text = (component) => {
  const { parentElement: root, data } = component;
  const state = (root.__specviz ??= newText(root));
  state.component = component;
  const known = specviz.take(state, data, component);
  specviz.chosenIs(data.run, data.selected);
  if (known !== null) {
    appendText(state, data.items, known);
    if (state.sticks) textToEnd(state);
  }
  if (state.place !== data.place) {
    state.place = data.place;
    markChosen(state);
  }
  if (state.box.dataset.placeholder !== data.placeholder) state.box.dataset.placeholder = data.placeholder;
  return specviz.whenGone(root, () => {
    clearTimeout(state.askAgain);
    state.forget();
    delete root.__specviz;
  });
};

function appendText(state, items, known) {
  const added = document.createDocumentFragment();
  for (const item of items) {
    if (item.at < known) continue;
    item.tokens.forEach((facts, i) => added.append(newToken(state, item, facts, i)));
  }
  state.box.append(added);
  state.colours.disabled = state.copy.disabled = !state.spans.length;
  if (!state.chosen) markChosen(state); // it may have been chosen before its token arrived
}

function newToken(state, item, facts, i) {
  const [id, status, round] = facts;
  const span = specviz.element("span", "token " + status);
  span.__token = { id, round, facts, at: state.spans.length, name: item.chip ?? item.names?.[i] ?? item.text };
  span.tabIndex = state.current ? -1 : 0;
  state.current ??= span;
  state.spans.push(span);
  state.byId.set(id, span);
  if (!state.rounds.has(round)) state.rounds.set(round, []);
  state.rounds.get(round).push(span);
  if (item.chip !== undefined) {
    span.classList.add("chip");
    span.textContent = item.chip;
  } else if (i === 0) {
    span.textContent = item.text;
    if (item.text.includes("\n")) span.classList.add("line-end");
    if (item.tokens.length > 1) span.classList.add("whole");
  } else {
    span.classList.add("part"); // part of the character before it
  }
  return span;
}

function newText(root) {
  const state = { ...newFrame(root.querySelector(".frame")), have: 0 };
  state.reset = () => {
    state.box.replaceChildren();
    Object.assign(state, {
      spans: [], byId: new Map(), rounds: new Map(),
      current: undefined, chosen: undefined, shownRound: undefined, place: undefined, sticks: true,
    });
    state.tip.hidden = state.newest.hidden = true;
    state.colours.disabled = state.copy.disabled = true;
  };
  state.forget = specviz.onChoice(root, () => markChosen(state));
  state.newest.onclick = () => textToEnd(state);
  state.colours.onclick = () => state.colours.setAttribute("aria-pressed", !state.box.classList.toggle("plain"));
  state.copy.onclick = () => copyText(state);
  hearPointer(state);
  hearKeys(state);
  return state;
}

// Made here: HTML in the component would be sent with every poll.
function newFrame(frame) {
  const made = specviz.element;
  const how = "Click a token to inspect it, or move with the arrow keys and press Enter.";
  const box = made("div", "text", "", {
    role: "group", "aria-label": "Output, one element per token", "aria-describedby": "keys",
  });
  const button = { type: "button" };
  const newest = made("button", "tool newest", "↓ Newest", button);
  const colours = made("button", "tool", "Colours", { ...button, "aria-pressed": "true" });
  const copy = made("button", "tool", "Copy text", button);
  const notice = made("span", "notice", "", { role: "status" });
  const tip = made("div", "tip", "", { id: "tip", role: "tooltip" });
  const tools = made("div", "tools");
  const buttons = made("span", "buttons");
  buttons.append(notice, colours, copy);
  tools.append(made("span", "keys", how, { id: "keys" }), buttons);
  frame.append(specviz.heading("Text"), tools, box, newest, tip);
  return { box, newest, colours, copy, notice, tip };
}

const tokenAt = (event) => event.target.closest?.(".token");

function hearPointer(state) {
  const { box } = state;
  let down;
  box.addEventListener("mouseover", (e) => {
    const span = tokenAt(e);
    if (!span) return;
    showTip(state, span);
    showRound(state, span.__token.round);
  });
  box.addEventListener("mouseout", () => {
    const focused = state.current?.matches(":focus-visible") && state.current;
    if (focused) showTip(state, focused);
    else state.tip.hidden = true;
    showRound(state, (focused || state.chosen)?.__token.round);
  });
  box.addEventListener("mousedown", (e) => (down = e));
  box.addEventListener("click", (e) => {
    const span = tokenAt(e);
    const dragged = down && Math.hypot(e.clientX - down.clientX, e.clientY - down.clientY) > 4; // selects text to copy
    if (!span || dragged) return;
    span.focus({ preventScroll: true });
    chooseToken(state, span);
  });
  const look = () => {
    state.tip.hidden = true;
    state.sticks = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
    state.newest.hidden = state.sticks;
  };
  box.addEventListener("scroll", look);
  new ResizeObserver(() => (state.sticks ? textToEnd(state) : look())).observe(box);
}

// One tab stop for the whole text; arrow keys go from token to token.
function hearKeys(state) {
  const { box, tip } = state;
  box.addEventListener("focusin", (e) => {
    const span = tokenAt(e);
    if (!span) return;
    stopAt(state, span);
    span.setAttribute("aria-describedby", "tip");
    showTip(state, span);
    showRound(state, span.__token.round);
  });
  box.addEventListener("focusout", (e) => {
    e.target.removeAttribute?.("aria-describedby");
    tip.hidden = true;
    showRound(state, state.chosen?.__token.round);
  });
  box.addEventListener("keydown", (e) => {
    const here = tokenAt(e);
    if (!here || e.ctrlKey || e.metaKey || e.altKey) return;
    const { spans } = state;
    const { at } = here.__token;
    const to = { ArrowRight: spans[at + 1], ArrowLeft: spans[at - 1], Home: spans[0], End: spans.at(-1) }[e.key];
    if (to) to.focus();
    else if (e.key === "Enter" || e.key === " ") chooseToken(state, here);
    else if (e.key === "Escape" && tip.hidden) specviz.choose(state.component, state.run, null);
    else if (e.key === "Escape") tip.hidden = true;
    else return;
    e.preventDefault();
  });
}

const chooseToken = (state, span) => specviz.choose(state.component, state.run, span.__token.id);

// The tab stop of the text.
function stopAt(state, span) {
  if (state.current) state.current.tabIndex = -1;
  state.current = span;
  span.tabIndex = 0;
}

// Marks the chosen token, wherever it was chosen. A dropped draft token is not in the text: then the token that replaced
// it is marked lightly, once the server has sent which one that is.
function markChosen(state) {
  const { run, id } = specviz.chosen;
  const itself = run === state.run && id !== null ? state.byId.get(id) : undefined;
  const dropped = run === state.run && id !== null && !itself;
  const span = itself ?? (dropped ? state.byId.get(state.place) : undefined);
  const look = itself ? "chosen" : "place";
  if (span === state.chosen && (!span || span.classList.contains(look))) return;
  state.chosen?.classList.remove("chosen", "place");
  state.chosen?.removeAttribute("aria-current");
  state.chosen = span;
  showRound(state, span?.__token.round);
  if (!span) return;
  span.classList.add(look);
  if (itself) span.setAttribute("aria-current", "true");
  if (!state.box.contains(state.box.getRootNode().activeElement)) stopAt(state, span);
  bringIntoBox(state.box, span);
}

// Scrolls the box, never the page.
function bringIntoBox(box, span) {
  const [at] = span.getClientRects();
  const view = box.getBoundingClientRect();
  if (!at || (at.top >= view.top && at.bottom <= view.bottom)) return;
  box.scrollTop += at.top - view.top - (view.height - at.height) / 2;
}

function textToEnd(state) {
  state.box.scrollTop = state.box.scrollHeight;
}

// Marks the tokens of one round lightly, and of no other.
function showRound(state, round) {
  if (round === state.shownRound) return;
  for (const span of state.rounds.get(state.shownRound) ?? []) span.classList.remove("round");
  for (const span of state.rounds.get(round) ?? []) span.classList.add("round");
  state.shownRound = round;
}

function showTip({ tip }, span) {
  tip.textContent = tipOf(span.__token);
  tip.hidden = false;
  const at = span.getClientRects()[0] ?? span.getBoundingClientRect();
  const left = Math.max(4, Math.min(at.left, innerWidth - tip.offsetWidth - 8));
  const below = at.bottom + 6;
  tip.style.left = left + "px";
  tip.style.top = (below + tip.offsetHeight > innerHeight ? at.top - tip.offsetHeight - 6 : below) + "px";
}

function tipOf({ name, facts: [, status, round, position, id, ...scores] }) {
  const label = name.slice(0, 100).replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥");
  return specviz.tip({ label: shortLabel(label, 40), id, status, round, position, scores });
}

// Chips are names of tokens, not text.
async function copyText(state) {
  const { spans, notice } = state;
  const text = spans.filter((s) => !s.classList.contains("chip")).map((s) => s.textContent).join("");
  const copied = await toClipboard(text).then(() => true, () => false);
  notice.textContent = copied ? "Copied." : "The browser does not allow copying: select the text and copy it.";
  clearTimeout(state.noticeEnds);
  state.noticeEnds = setTimeout(() => (notice.textContent = ""), 4000);
}

async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // A page over plain HTTP from another machine has no clipboard API.
  const field = specviz.element("textarea", "");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not copied");
}
