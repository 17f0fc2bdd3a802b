// Plotly.react keeps zoom and hover where Streamlit's own chart element would mount a new chart.
specviz.charts = (component) => {
  const { parentElement: root, data } = component;
  const text = specviz.css(root, "--st-text-color", "#31333F");
  const family = specviz.css(root, "--st-font", "sans-serif");
  const row = root.querySelector(".charts");
  data.figures.forEach((figure, i) => {
    const layout = {
      ...figure.layout,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: text, family, size: 12 }, uirevision: data.run, autosize: true,
    };
    while (row.childElementCount <= i) row.append(specviz.element("div", "chart"));
    Plotly.react(row.children[i], figure.data, layout, { displayModeBar: false, responsive: true });
  });
  return specviz.whenGone(root, () => root.querySelectorAll(".chart").forEach((chart) => Plotly.purge(chart)));
};
