// The output, one span per token. Model text enters the page through textContent only.
specviz.text = (component) => {
  const { parentElement: root, data } = component;
  const state = (root.__specviz ??= newText(root));
  const known = specviz.take(state, data, component);
  if (known !== null) {
    const atEnd = state.box.scrollTop + state.box.clientHeight >= state.box.scrollHeight - 8;
    const added = document.createDocumentFragment();
    for (const item of data.items) {
      if (item.at < known) continue;
      item.tokens.forEach((token, i) => added.append(newToken(item, token, i)));
    }
    state.box.append(added);
    state.box.querySelector(".token")?.setAttribute("tabindex", state.current ? "-1" : "0");
    if (atEnd) state.box.scrollTop = state.box.scrollHeight;
  }
  state.box.dataset.placeholder = data.placeholder ?? "";
  return specviz.whenGone(root, () => {
    clearTimeout(state.askAgain);
    delete root.__specviz;
  });
};

function newToken(item, token, i) {
  const span = specviz.element("span", "token " + token.status);
  span.tabIndex = -1;
  span.__tip = token.tip;
  if (item.chip !== undefined) {
    span.classList.add("chip");
    span.textContent = item.chip;
  } else if (i === 0) {
    span.textContent = item.text;
    if (item.text.includes("\n")) span.classList.add("line-end");
    if (item.tokens.length > 1) span.classList.add("whole");
  } else {
    span.classList.add("part"); // shares the character in front of it
  }
  return span;
}

function newText(root) {
  const box = root.querySelector(".text");
  const tip = root.querySelector(".tip");
  const state = { box, have: 0 };
  state.reset = () => {
    box.replaceChildren();
    state.current = undefined;
    tip.hidden = true;
  };
  const show = (span) => {
    tip.textContent = span.__tip;
    tip.hidden = false;
    const at = span.getClientRects()[0] ?? span.getBoundingClientRect();
    const left = Math.max(4, Math.min(at.left, innerWidth - tip.offsetWidth - 8));
    const below = at.bottom + 6;
    tip.style.left = left + "px";
    tip.style.top = (below + tip.offsetHeight > innerHeight ? at.top - tip.offsetHeight - 6 : below) + "px";
  };
  const hide = () => (tip.hidden = true);
  const token = (event) => event.target.closest?.(".token");
  box.addEventListener("mouseover", (e) => token(e) && show(token(e)));
  box.addEventListener("mouseout", () => (state.current && state.current.matches(":focus") ? show(state.current) : hide()));
  box.addEventListener("scroll", hide);
  // One tab stop for the whole text; arrow keys go from token to token.
  box.addEventListener("focusin", (e) => {
    const span = token(e);
    if (!span) return;
    state.current?.setAttribute("tabindex", "-1");
    box.querySelector(".token")?.setAttribute("tabindex", "-1");
    state.current = span;
    span.tabIndex = 0;
    span.setAttribute("aria-describedby", "tip");
    show(span);
  });
  box.addEventListener("focusout", (e) => {
    e.target.removeAttribute?.("aria-describedby");
    hide();
  });
  box.addEventListener("click", (e) => token(e)?.focus({ preventScroll: true }));
  box.addEventListener("keydown", (e) => {
    const here = token(e);
    if (!here) return;
    const to = {
      ArrowRight: here.nextElementSibling, ArrowLeft: here.previousElementSibling,
      Home: box.firstElementChild, End: box.lastElementChild,
    }[e.key];
    if (e.key === "Escape") hide();
    if (!to) return;
    e.preventDefault();
    to.focus();
    show(to);
  });
  return state;
}
