"use strict";
// Draws each figure when it comes near the screen, all of them before printing, in the page's colours.
(function () {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const boxes = Array.from(document.querySelectorAll(".chart"));
  const config = {
    responsive: true,
    displaylogo: false,
    // A closed list: the default bar has a button that sends the chart to a server.
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    plotlyServerURL: "",
    displayModeBar: "hover",
  };
  const drawn = new Set();
  let printing = false;

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    const paper = printing ? { text: "#1b1f24", grid: "#d9dde3", card: "#ffffff" } : null;
    return paper || { text: of("--text"), grid: of("--line"), card: of("--card") };
  }

  function themed(layout) {
    const { text, grid, card } = theme();
    const look = { gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true };
    const axis = (own) => Object.assign({}, look, own, {
      title: Object.assign({ standoff: 10, font: { size: 13, color: text } }, own.title),
    });
    // On paper the width is known (A4 within its margins); on screen Plotly follows the box.
    const size = printing ? { width: 680, height: 290, autosize: false } : { autosize: true };
    return Object.assign({}, layout, size, {
      updatemenus: (layout.updatemenus || []).map((menu) => Object.assign({ bgcolor: card, bordercolor: grid, font: { color: text } }, menu)),
      annotations: (layout.annotations || []).map((note) => Object.assign({ bgcolor: card, borderpad: 3 }, note)),
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: text },
      hoverdistance: 60,
      modebar: { bgcolor: "rgba(0,0,0,0)", color: grid, activecolor: text },
      hoverlabel: { bgcolor: card, bordercolor: grid, font: { color: text } },
      xaxis: axis(layout.xaxis),
      yaxis: axis(layout.yaxis),
    });
  }

  function draw(box) {
    if (drawn.has(box)) return;
    const figure = figures[box.dataset.figure];
    if (!figure) return;
    drawn.add(box);
    Plotly.newPlot(box, figure.data, themed(figure.layout), config);
  }

  function redraw() {
    drawn.forEach((box) => Plotly.react(box, figures[box.dataset.figure].data, themed(figures[box.dataset.figure].layout), config));
  }

  if ("IntersectionObserver" in window) {
    const near = new IntersectionObserver(
      (entries) => entries.filter((e) => e.isIntersecting).forEach((e) => { near.unobserve(e.target); draw(e.target); }),
      { rootMargin: "800px" },
    );
    boxes.forEach((box) => near.observe(box));
  } else {
    boxes.forEach(draw);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    printing = true;
    document.querySelectorAll("details").forEach((d) => { if (!d.open) { d.open = true; d.dataset.closed = "1"; } });
    boxes.forEach(draw);
    redraw();
  });
  addEventListener("afterprint", () => {
    printing = false;
    document.querySelectorAll("details[data-closed]").forEach((d) => { d.open = false; delete d.dataset.closed; });
    redraw();
  });
})();
