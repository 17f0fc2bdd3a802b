// Charts that are redrawn in place: Plotly.react keeps hover and elements; Streamlit's own element would mount again.

// One chart per task, so that no task is long. A chart that changes faster than it is drawn skips old states.
specviz.toDraw = new Set();
specviz.drawLater = (draw) => {
  if (!specviz.toDraw.size) setTimeout(specviz.drawNext, 0);
  specviz.toDraw.add(draw);
};
specviz.drawNext = () => {
  const [draw] = specviz.toDraw;
  try {
    draw();
  } finally {
    specviz.toDraw.delete(draw);
    if (specviz.toDraw.size) setTimeout(specviz.drawNext, 0);
  }
};

// A copy of the figure with the theme's colours: Plotly changes its arguments.
specviz.coloured = (value, colours) => {
  if (typeof value === "string") return colours[value] ?? value;
  if (Array.isArray(value)) return value.map((v) => specviz.coloured(v, colours));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, specviz.coloured(v, colours)]));
};

// Draws a chart if its box has a width; otherwise it is drawn when the box gets one.
specviz.drawChart = (state, box) => {
  const [title, note, plot] = box.children;
  const width = (box.__drawn = box.clientWidth);
  if (!width) return;
  const figure = specviz.coloured(box.__figure, { "@text": state.theme });
  const layout = {
    ...figure.layout, width, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", uirevision: state.run,
    font: { color: state.theme, family: specviz.css(state.row, "--st-font", "sans-serif"), size: 12 },
  };
  title.textContent = figure.title;
  note.textContent = figure.note;
  note.classList.toggle("chart-bad", figure.bad);
  plot.setAttribute("aria-label", `${figure.title}: ${figure.words}.`);
  Plotly.react(plot, figure.data, layout, { displayModeBar: false, typesetMath: false, showTips: false });
};

specviz.chartBox = (name) => {
  const box = specviz.element("div", "chart");
  box.dataset.chart = name;
  const plot = specviz.element("div", "chart-plot", "", { role: "img" });
  box.append(specviz.element("h3", "chart-title"), specviz.element("div", "chart-note"), plot);
  return box;
};

specviz.chartsState = (row) => {
  const state = { row, have: 0, boxes: new Map(), reset() {} };
  const drawAll = (which) => {
    for (const box of state.boxes.values()) if (box.__figure && which(box)) specviz.drawLater(box.__draw);
  };
  state.readTheme = () => {
    const text = getComputedStyle(row).color;
    if (text === state.theme) return;
    state.theme = text;
    drawAll(() => true);
  };
  // The row's colour has an invisible short transition: its end event reports a new theme.
  row.addEventListener("transitionend", (event) => event.target === row && state.readTheme());
  state.watch = new ResizeObserver(() => drawAll((box) => box.clientWidth !== box.__drawn));
  return state;
};

// Makes a box for each name, in order, and removes the boxes of charts that the run does not have.
specviz.arrange = (state, names) => {
  for (const [name, box] of state.boxes) {
    if (names.includes(name)) continue;
    state.boxes.delete(name);
    state.watch.unobserve(box);
    Plotly.purge(box.lastChild);
    box.remove();
  }
  names.forEach((name, i) => {
    let box = state.boxes.get(name);
    if (!box) {
      box = specviz.chartBox(name);
      box.__draw = () => specviz.drawChart(state, box);
      state.boxes.set(name, box);
      state.watch.observe(box);
    }
    if (state.row.children[i] !== box) state.row.insertBefore(box, state.row.children[i] ?? null);
  });
};

specviz.charts = (component) => {
  const { parentElement: root, data } = component;
  const row = root.querySelector(".charts");
  const state = (row.__specviz ??= specviz.chartsState(row));
  row.setAttribute("aria-label", data.label);
  state.readTheme();
  if (specviz.take(state, data, component) !== null) {
    specviz.arrange(state, data.shown);
    for (const { name, figure } of data.items) {
      const box = state.boxes.get(name);
      box.__figure = figure;
      specviz.drawLater(box.__draw);
    }
  }
  return specviz.whenGone(root, () => {
    clearTimeout(state.askAgain);
    state.watch.disconnect();
    state.boxes.forEach((box) => Plotly.purge(box.lastChild));
    delete row.__specviz;
  });
};
