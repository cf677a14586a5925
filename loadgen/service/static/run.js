import { $, api, complain, duration, el, head, number, say, tag, title, when } from "./common.js";
import { draw } from "./chart.js";

const name = decodeURIComponent(location.pathname.split("/").pop());
const path = `/api/runs/${encodeURIComponent(name)}`;
const FILES = [["summary.json", "summary.json"], ["cells.csv", "cells.csv"], ["report.md", "report.md"]];
let run = null;
let points = [];
let source = null;
let last = null;
let saidAt = 0;

const ended = (state) => ["completed", "cancelled", "interrupted"].includes(state);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const condition = (p) => `${p.workload}, ${p.input_tokens} input tokens${p.temperature ? `, temperature ${p.temperature}` : ""}`;

function showRun() {
  document.title = `${title(run)} – loadgen`;
  $("title").textContent = title(run);
  $("simulated").hidden = !run.simulated;
  $("name").textContent = `${when(run.created_at)}, ${run.run}`;
  const facts = [
    ["Profiles", run.profiles.join(", ")], ["Against", run.against], ["Workloads", run.workloads.join(", ")],
    ["Requests in flight", run.levels.join(", ")], ["Repeats", run.repeats], ["Engine", run.engine],
  ];
  $("asked").replaceChildren(...facts.map(([what, value]) => el("div", {}, el("dt", {}, what), el("dd", {}, String(value)))));
}

function showStatus(status) {
  const before = last;
  last = status;
  $("state").replaceChildren(tag(status.state));
  complain($("problem"), status.state === "interrupted" && status.reason && status.reason !== "interrupted" ? new Error(`Interrupted: ${status.reason}`) : null);
  $("bar").max = status.cells_planned || 1;
  $("bar").value = status.cells;
  $("count").textContent = `${status.cells} of ${status.cells_planned} cells`;
  const over = ended(status.state);
  $("progress-box").hidden = status.state === "completed";
  $("left").textContent = over || status.remaining_s === null ? "" : `about ${duration(status.remaining_s)} left`;
  $("now").textContent = nowWords(status);
  $("cancel").hidden = over;
  $("cancel").disabled = status.state === "stopping";
  $("resume").hidden = !over || status.state === "completed" || status.cells >= status.cells_planned;
  $("hint").textContent = over && !$("resume").hidden ? "What was measured is kept; only missing cells are measured." : "";
  $("answer-box").hidden = !(over && status.answer);
  $("chart-title").textContent = over ? "Throughput" : "Throughput so far";
  if (over && status.answer) {
    $("answer").textContent = status.answer;
    showFiles(status.files);
  }
  $("notice-box").hidden = status.notices.length === 0;
  $("notices").replaceChildren(...status.notices.map((text) => el("li", {}, text)));
  speak(before, status);
}

function nowWords(status) {
  if (status.state === "queued") return `Waits for its turn: number ${status.queue_position} in the queue.`;
  if (status.state === "stopping") return "Stopping: servers go down, the report is written.";
  if (ended(status.state)) return "";
  const now = status.running;
  if (now) {
    const rate = now.tokens_per_s === null ? "" : `, ${number(now.tokens_per_s)} tokens/s`;
    return `Now: ${now.profile} on ${now.workload}, ${now.level} in flight, repeat ${now.repeat + 1} (${now.phase}${rate})`;
  }
  const servers = Object.entries(status.servers).map(([server, phase]) => `${server} ${phase}`);
  return servers.length ? `Servers: ${servers.join(", ")}` : "Starting …";
}

// A screen reader hears each change of state, and progress at most every 10 seconds.
function speak(before, status) {
  if (before?.state !== status.state) say(`${status.state}. ${ended(status.state) ? status.answer ?? status.reason : ""}`);
  else if (before.cells !== status.cells && Date.now() - saidAt > 10000) {
    saidAt = Date.now();
    say(`${status.cells} of ${status.cells_planned} cells measured`);
  }
}

function showFiles(files) {
  const link = (file, text, attributes = {}) => el("a", { href: `/runs/${encodeURIComponent(name)}/${file}`, ...attributes }, text);
  $("files").replaceChildren(
    ...(files.includes("report.html") ? [link("report.html", "Open the report", { class: "button main" })] : []),
    el("a", { class: "button", href: `/plan?run=${encodeURIComponent(name)}` }, "Plan capacity"),
    ...FILES.filter(([file]) => files.includes(file)).map(([file, text]) => link(file, text)),
  );
}

function groups() {
  const found = new Map();
  for (const point of points) {
    const key = condition(point);
    if (!found.has(key)) found.set(key, new Map());
    const levels = found.get(key);
    if (!levels.has(point.profile)) levels.set(point.profile, new Map());
    const cells = levels.get(point.profile);
    cells.set(point.level, [...(cells.get(point.level) ?? []), point]);
  }
  return found;
}

function showPoints() {
  $("chart-box").hidden = points.length === 0;
  const boxes = new Map([...$("charts").children].map((figure) => [figure.dataset.key, figure]));
  const tables = [];
  for (const [key, profiles] of groups()) {
    if (!boxes.has(key)) {
      const figure = el("figure", { "data-key": key },
        el("figcaption", {}, el("h3", {}, key), el("p", {}, "Output tokens per second over requests in flight; a point is the mean of its repeats.")),
        el("div", { class: "chart", role: "img", "aria-label": `Throughput on ${key}; the table below holds the figures` }));
      $("charts").append(figure);
      boxes.set(key, figure);
    }
    const order = run.profiles.filter((profile) => profiles.has(profile));
    const value = (cells) => mean(cells.map((cell) => cell.tokens_per_s ?? 0));
    const series = order.map((profile) => ({
      name: profile, grey: profile === run.against,
      points: [...profiles.get(profile)].map(([level, cells]) => ({ level, value: value(cells), n: cells.length })),
    }));
    draw(boxes.get(key).querySelector(".chart"), series, { unit: "tokens/s", levels: run.levels });
    tables.push(table(key, order, profiles, value));
  }
  $("tables").replaceChildren(...tables);
}

function table(key, order, profiles, value) {
  const base = profiles.get(run.against);
  const levels = run.levels.filter((level) => order.some((profile) => profiles.get(profile).has(level)));
  const rows = order.flatMap((profile) => {
    const cells = profiles.get(profile);
    const speed = el("tr", {}, el("th", { scope: "row" }, `${profile}, tokens/s`), ...levels.map((l) => el("td", { class: "num" }, cells.has(l) ? number(value(cells.get(l))) : "")));
    if (profile === run.against || !base) return [speed];
    const ratios = levels.map((l) => (cells.has(l) && base.has(l) ? value(cells.get(l)) / value(base.get(l)) : null));
    return [speed, el("tr", {}, el("th", { scope: "row" }, `${profile} / ${run.against}`),
      ...ratios.map((r) => el("td", { class: `num ${r > 1.05 ? "gain" : r !== null && r < 0.95 ? "loss" : ""}` }, r === null ? "" : `${number(r)}×`)))];
  });
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Figures of ${key}` },
    el("table", {}, el("caption", {}, `${key} (means so far; the report has the intervals)`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "requests in flight"), ...levels.map((l) => el("th", { scope: "col", class: "num" }, String(l))))),
      el("tbody", {}, ...rows)));
}

function watch() {
  source?.close();
  source = new EventSource(`${path}/events`);
  // After a reconnect all cells come again.
  source.addEventListener("open", () => { points = []; });
  source.addEventListener("cells", (event) => { points.push(...JSON.parse(event.data)); showPoints(); });
  source.addEventListener("status", (event) => { showStatus(JSON.parse(event.data)); });
  source.addEventListener("end", () => { source.close(); });
  source.addEventListener("error", () => { $("now").textContent = "The service does not answer; trying again …"; });
}

async function act(what) {
  complain($("problem"));
  try {
    await api(`${path}/${what}`, { method: "POST" });
    watch();
  } catch (error) {
    complain($("problem"), error);
  }
}

async function begin() {
  head();
  $("cancel").addEventListener("click", () => act("cancel"));
  $("resume").addEventListener("click", () => act("resume"));
  try {
    run = await api(path);
  } catch (error) {
    complain($("problem"), error);
    return;
  }
  showRun();
  watch();
}

begin();
