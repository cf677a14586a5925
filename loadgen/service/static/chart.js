// Lines over requests in flight, in the report's colours, dashes and symbols: readable without colour.
const COLOURS = ["#2f7fd6", "#d2691e", "#1f9a6b", "#b25aa0", "#8f7d1a", "#cf4f57", "#2a95a8"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x"];
const GREY = "#7d8590";
const drawn = new Map();
const watched = new WeakSet();

function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { text: of("--text"), grid: of("--line"), card: of("--card") };
}

// series: [{name, grey, points: [{level, value, n}]}]; options: {unit, levels, reference}
export function draw(box, series, options) {
  drawn.set(box, [series, options]);
  const { text, grid, card } = theme();
  const levels = options.levels;
  const ends = [Math.log2(levels[0]) - 0.25, Math.log2(levels.at(-1)) + 0.25];
  let colour = 0;
  const traces = series.map((one) => {
    const i = one.grey ? -1 : colour++;
    const paint = i < 0 ? GREY : COLOURS[i % COLOURS.length];
    const points = [...one.points].sort((a, b) => a.level - b.level);
    return {
      name: one.name,
      x: points.map((p) => Math.log2(p.level)),
      y: points.map((p) => p.value),
      customdata: points.map((p) => [p.level, p.n]),
      mode: "lines+markers",
      line: { color: paint, width: 2.2, dash: i < 0 ? "solid" : DASHES[i % DASHES.length] },
      marker: { color: paint, size: 8, symbol: i < 0 ? "circle-open" : SYMBOLS[i % SYMBOLS.length] },
      hovertemplate: `%{y:,.3~r} ${options.unit}, %{customdata[0]} in flight (n = %{customdata[1]})`,
    };
  });
  const axis = { gridcolor: grid, linecolor: grid, zeroline: false, fixedrange: true };
  const layout = {
    margin: { l: 58, r: 12, t: 8, b: 40 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: text },
    hoverlabel: { bgcolor: card, bordercolor: grid, font: { color: text } },
    hovermode: "closest",
    showlegend: true,
    legend: { orientation: "h", y: -0.24, x: 0 },
    xaxis: { ...axis, title: { text: "requests in flight", standoff: 6, font: { size: 13 } }, range: ends, tickvals: levels.map((l) => Math.log2(l)), ticktext: levels.map(String) },
    yaxis: { ...axis, title: { text: options.unit, standoff: 8, font: { size: 13 } }, rangemode: options.reference ? "normal" : "tozero", tickformat: ",.3~r" },
  };
  if (options.reference) {
    layout.shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: options.reference, y1: options.reference, line: { color: GREY, width: 1.5, dash: "dash" } }];
  }
  if (!watched.has(box)) {
    watched.add(box);
    new ResizeObserver(() => { if (box.isConnected && box.clientWidth) window.Plotly.Plots.resize(box); }).observe(box);
  }
  window.Plotly.react(box, traces, layout, { displayModeBar: false, plotlyServerURL: "" });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [box, given] of drawn) if (box.isConnected) draw(box, ...given);
});
