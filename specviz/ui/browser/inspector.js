// What is known about the chosen token. Model text enters the page through textContent only.
// The elements are made once and then filled again: nothing flickers, and a pressed button keeps the focus.
specviz.inspector = (component) => {
  const { parentElement: root, data } = component;
  const state = (root.__specviz ??= newInspector(root));
  state.component = component;
  const known = specviz.take(state, data, component);
  specviz.chosenIs(data.run, data.selected);
  if (known !== null) {
    state.detail = data.items.at(-1) ?? null;
    if (state.detail) fillInspector(state, state.detail);
    showInspector(state);
    publishDetail(state);
  }
  return specviz.whenGone(root, () => {
    clearTimeout(state.askAgain);
    state.forget();
    delete root.__specviz;
  });
};

function newInspector(root) {
  const state = { ...newCard(root.querySelector(".inspector")), have: 0, detail: null };
  state.reset = () => {
    state.detail = null;
    showInspector(state);
  };
  state.forget = specviz.onChoice(root, () => showInspector(state));
  const go = (button, to) => (button.onclick = () => specviz.choose(state.component, state.run, to()));
  go(state.previous, () => state.detail.go.previous);
  go(state.next, () => state.detail.go.next);
  go(state.sibling, () => state.detail.go.sibling);
  go(state.close, () => null);
  return state;
}

// A choice takes effect at once; its detail comes with the server's next message.
function showInspector(state) {
  const { run, id } = specviz.chosen;
  const chosen = run === state.run && id !== null && id !== undefined;
  state.card.hidden = !(chosen && state.detail);
  state.hint.hidden = !state.card.hidden;
  state.card.classList.toggle("waiting", chosen && state.detail?.id !== id);
}

// For other components: the tree draws the alternatives of the chosen token.
function publishDetail({ run, detail }) {
  const alternatives = (detail?.table.rows ?? [])
    .filter((row) => !row.rest)
    .map(({ token, p, q, residual }) => ({ token, p, q, residual }));
  const published = { run, id: detail?.id ?? null, alternatives };
  document.dispatchEvent(new CustomEvent("specviz-detail", { detail: published }));
}

function newCard(box) {
  const button = (className, text, label) => specviz.element("button", className, text, { type: "button", "aria-label": label, title: label });
  const parts = {
    hint: specviz.element("p", "hint", "Click a token in the tree or in the text."),
    card: specviz.element("div", "card"),
    glyph: specviz.element("span", "glyph", "", { "aria-hidden": "true" }),
    token: specviz.element("b", "token"),
    status: specviz.element("span", "status"),
    place: specviz.element("span", "place"),
    sentence: specviz.element("p", "sentence"),
    previous: button("step", "←", "Previous token"),
    next: button("step", "→", "Next token"),
    close: button("step", "×", "Close the inspector"),
    sibling: specviz.element("button", "sibling", "", { type: "button" }),
    scale: newScale(),
    table: specviz.element("table", "shares"),
    facts: specviz.element("dl", "facts"),
  };
  const headline = specviz.element("div", "headline", "", { "aria-live": "polite", "aria-atomic": "true" });
  const title = specviz.element("div", "title");
  title.append(parts.glyph, " ", parts.token, " ", parts.status, " ", parts.place);
  headline.append(title, parts.sentence);
  const steps = specviz.element("div", "steps", "", { role: "group", "aria-label": "Go to another token" });
  steps.append(parts.previous, parts.next, parts.close);
  const numbers = specviz.element("div", "numbers");
  numbers.append(parts.facts, specviz.element("p", "note", LOGPROBS), parts.sibling);
  const body = specviz.element("div", "body");
  body.append(parts.scale.box, parts.table, numbers);
  parts.card.append(headline, steps, body);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Decision inspector");
  box.replaceChildren(specviz.heading("Decision inspector"), parts.hint, parts.card);
  parts.card.hidden = true;
  return parts;
}

const LOGPROBS = "p and q are after the sampling settings; log-probabilities and entropy are before them.";

function newScale() {
  const box = specviz.element("div", "scale", "", { role: "img" });
  const track = specviz.element("div", "track");
  const zone = specviz.element("div", "zone");
  const mark = specviz.element("div", "mark");
  const ends = specviz.element("div", "ends");
  const label = specviz.element("span", "label");
  ends.append(specviz.element("span", "", "0"), label, specviz.element("span", "", "1"));
  track.append(zone, mark);
  box.append(track, ends);
  return { box, zone, mark, label };
}

function fillInspector(state, item) {
  const look = specviz.looks[item.status];
  state.card.style.setProperty("--status", look.colour);
  state.glyph.textContent = look.glyph;
  state.token.textContent = item.token;
  state.status.textContent = item.status;
  state.status.title = item.meaning;
  state.place.textContent = item.place;
  state.sentence.textContent = item.sentence.replaceAll(" = ", "\u00a0=\u00a0"); // no line ends within "p = 0.19"
  state.previous.disabled = item.go.previous === null;
  state.next.disabled = item.go.next === null;
  state.sibling.hidden = item.go.sibling === null;
  state.sibling.textContent = item.go.to_sibling;
  fillScale(state.scale, item.scale);
  fillFacts(state.facts, item.facts);
  fillShares(state.table, item);
}

const percent = (share) => 100 * Math.min(1, Math.max(0, share)) + "%";

function fillScale({ box, zone, mark, label }, scale) {
  box.hidden = scale === null;
  if (!scale) return;
  box.setAttribute("aria-label", scale.label);
  label.textContent = scale.label;
  zone.style.left = percent(scale.from);
  zone.style.width = percent(scale.to - scale.from);
  mark.hidden = scale.at === null;
  mark.style.left = percent(scale.at ?? 0);
}

function fillFacts(list, facts) {
  while (list.childElementCount < facts.length) {
    const fact = specviz.element("div", "fact");
    fact.append(specviz.element("dt", ""), specviz.element("dd", ""));
    list.append(fact);
  }
  while (list.childElementCount > facts.length) list.lastElementChild.remove();
  facts.forEach(([name, value], i) => {
    const [term, number] = list.children[i].children;
    term.textContent = name;
    number.textContent = value;
    number.classList.toggle("unknown", value === "n/a");
  });
}

// The two distributions side by side, a row for each token, and all other tokens in the last one.
function fillShares(table, { table: { caption, columns, rows }, status }) {
  table.hidden = !rows.length;
  const key = columns.join();
  if (table.__key !== key) {
    table.__key = key;
    table.replaceChildren(specviz.element("caption", ""), sharesHead(columns), specviz.element("tbody", ""));
  }
  table.caption.textContent = caption;
  const body = table.tBodies[0];
  while (body.rows.length < rows.length) body.append(sharesRow(columns));
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  rows.forEach((row, i) => fillRow(body.rows[i], row, status));
}

function sharesHead(columns) {
  const head = specviz.element("thead", "");
  const row = specviz.element("tr", "");
  row.append(specviz.element("th", "", "token", { scope: "col" }));
  for (const [kind, name] of columns) row.append(specviz.element("th", kind, name, { scope: "col" }));
  head.append(row);
  return head;
}

function sharesRow(columns) {
  const row = specviz.element("tr", "");
  const name = specviz.element("th", "", "", { scope: "row" });
  const token = specviz.element("div", "which");
  token.append(specviz.element("span", "name"), specviz.element("span", "is-draft", "draft"), specviz.element("span", "is-final"));
  name.append(token);
  row.append(name);
  for (const [kind] of columns) {
    const cell = specviz.element("td", kind);
    const share = specviz.element("div", "share");
    share.append(specviz.element("span", "number"), specviz.element("span", "bar"));
    cell.append(share);
    row.append(cell);
  }
  return row;
}

function fillRow(row, { token, cells, rest = false, draft = false, final = false }, status) {
  const [name, isDraft, isFinal] = row.cells[0].firstElementChild.children;
  row.classList.toggle("rest", rest);
  row.classList.toggle("self", status === "resampled" || status === "bonus" ? final : draft);
  name.textContent = name.title = token;
  isDraft.hidden = !draft;
  isFinal.hidden = !final;
  isFinal.textContent = status === "accepted" ? "kept" : "final";
  cells.forEach(([share, text], i) => {
    const [number, bar] = row.cells[i + 1].firstElementChild.children;
    number.textContent = text;
    bar.style.setProperty("--share", percent(share ?? 0));
    bar.classList.toggle("unknown", share === null);
  });
}
