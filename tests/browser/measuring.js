// Watches the page from within, before any script of it has run. Nothing here is part of the product.
const measured = (globalThis.__measured = {
  roots: [document], drawn: [], longTasks: [], sampling: false, samples: 0, blank: {}
});

const attachShadow = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (...how) {
  const root = attachShadow.apply(this, how);
  measured.roots.push(root);
  return root;
};

measured.find = (selector) => {
  measured.roots = measured.roots.filter((root) => root === document || root.host.isConnected);
  for (const root of measured.roots) {
    const found = root.querySelector(selector);
    if (found) return found;
  }
  return null;
};

new PerformanceObserver((list) => {
  for (const task of list.getEntries()) {
    measured.longTasks.push([performance.timeOrigin + task.startTime, task.duration]);
  }
}).observe({ type: "longtask", buffered: true });

// When a node is on the screen: the frame after the one in which vis-network drew it for the first time.
measured.hook = (state) => {
  if (measured.hooked === state) return;
  measured.hooked = state;
  let added = [];
  state.drawn.on("add", (_, { items }) => added.push(...items));
  state.network.on("afterDrawing", () => {
    if (!added.length) return;
    const ids = added;
    added = [];
    requestAnimationFrame(() => {
      const now = Date.now();
      for (const id of ids) measured.drawn.push([id, now]);
    });
  });
};

const small = document.createElement("canvas");
[small.width, small.height] = [64, 32];
const pen = small.getContext("2d", { willReadFrequently: true });
measured.inked = (canvas) => {
  if (!canvas?.isConnected || !canvas.width || !canvas.height) return 0;
  pen.clearRect(0, 0, small.width, small.height);
  pen.drawImage(canvas, 0, 0, small.width, small.height);
  const { data } = pen.getImageData(0, 0, small.width, small.height);
  let inked = 0;
  for (let i = 3; i < data.length; i += 4) if (data[i] > 0) inked += 1;
  return inked;
};

// What a person would see flicker: each part of the page must have something in it at any time.
measured.parts = () => ({
  tree: measured.inked(measured.find(".network canvas")) > 0,
  text: measured.find(".text[role=group] .token") !== null,
  charts: measured.charts().length > 0 && measured.charts().every((chart) => chart.querySelector(".main-svg")),
});
measured.charts = () => [...document.querySelectorAll(".js-plotly-plot")];

setInterval(() => {
  const state = measured.find(".network")?.__specviz;
  if (state) measured.hook(state);
  if (!measured.sampling) return;
  measured.samples += 1;
  for (const [part, there] of Object.entries(measured.parts())) if (!there) measured.blank[part] = (measured.blank[part] ?? 0) + 1;
}, 50);

// The elements that must outlive every poll.
measured.elements = () => [measured.find(".network"), measured.find(".network canvas"), measured.find(".text[role=group]"), ...measured.charts()];
measured.remember = () => (measured.kept = measured.elements());
measured.same = () => measured.kept.every((element) => element?.isConnected) && measured.elements().length >= measured.kept.length;

measured.view = () => {
  const { network } = measured.hooked;
  return [network.getScale(), network.getViewPosition()];
};

measured.spans = () => [...(measured.find(".text[role=group]")?.querySelectorAll(".token") ?? [])];

measured.whole = () => {
  const spans = measured.spans();
  const statuses = ["pending", "accepted", "rejected", "ignored", "resampled", "bonus"];
  return {
    nodes: measured.hooked.nodes.get().map((n) => [n.id, n.status, n.parent, n.label]).sort((a, b) => a[0] - b[0]),
    text: spans.map((span) => span.textContent).join(""),
    spans: spans.map((span) => statuses.find((status) => span.classList.contains(status))),
  };
};

// Loses the next `n` messages of the tree and of the text, as a busy browser does.
measured.lose = (n) => {
  const { take } = __specviz;
  const lost = (measured.lost = new Map());
  __specviz.take = (state, delta, component) => {
    const concerned = component.parentElement.querySelector(".network, .text");
    const part = lost.get(state) ?? { left: concerned ? n : 0, to: 0 };
    if (part.left === 0 || delta.to <= state.have) return take(state, delta, component);
    lost.set(state, { left: part.left - 1, to: delta.to, at: Date.now() });
    return null;
  };
};
measured.lostAll = () => measured.lost.size >= 2 && [...measured.lost.values()].every(({ left }) => left === 0);
measured.recovered = () => [...measured.lost].every(([state, { to }]) => state.have >= to);

measured.block = (ms) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
  return Date.now();
};

// The time at which a condition first holds, looked at in every frame.
measured.when = (condition, patience = 120_000) =>
  new Promise((done, fail) => {
    const until = Date.now() + patience;
    const look = () => {
      if (condition()) done(Date.now());
      else if (Date.now() > until) fail(new Error(`not within ${patience} ms: ${condition}`));
      else requestAnimationFrame(look);
    };
    look();
  });

// Receives everything and draws nothing, to tell what the server costs from what the browser costs.
measured.mute = (on) => {
  const renderers = (measured.renderers ??= Object.fromEntries(
    ["tree", "text", "inspector", "charts"].map((name) => [name, __specviz[name]]),
  ));
  for (const [name, draw] of Object.entries(renderers)) __specviz[name] = on ? () => {} : draw;
};
