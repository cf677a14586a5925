import { $, api, complain, el, head, number, when } from "./common.js";
import { draw } from "./chart.js";

const LETTERS = "ABCDEF";
const names = [...new Set(new URLSearchParams(location.search).getAll("run"))].slice(0, 6);

async function load(name) {
  const path = `/api/runs/${encodeURIComponent(name)}`;
  const [row, summary] = await Promise.all([api(path), api(`${path}/summary`)]);
  return { row, summary };
}

function verdict(found) {
  if (!found) return "";
  if (found.status === "found") {
    return found.crossings.map((c) => {
      const span = c.ci95 ? ` (${c.ci95[0]} to ${c.ci95[1]})` : "";
      return `${c.direction === "down" ? "up to" : "from"} ${c.concurrency}${span}`;
    }).join("; ");
  }
  return found.status.replaceAll("_", " ");
}

function facts(runs) {
  const rows = [
    ["Answer", (r) => r.summary.answer],
    ["Engine", (r) => `${r.row.engine}${r.row.simulated ? " (SIMULATED)" : ""}`],
    ["Model", (r) => r.summary.model ?? ""],
    ["vLLM", (r) => r.summary.vllm_version ?? ""],
    ["Profiles", (r) => r.row.profiles.join(", ")],
    ["Cells", (r) => `${r.row.cells} of ${r.row.cells_planned}, ${r.row.repeats} per level`],
    ["Started", (r) => when(r.row.created_at)],
  ];
  $("facts").replaceChildren(
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, ""), ...runs.map((r) => el("th", { scope: "col" }, `${r.letter}: `, el("a", { href: `/run/${encodeURIComponent(r.row.run)}` }, r.row.run))))),
    el("tbody", {}, ...rows.map(([what, of]) => {
      const values = runs.map(of);
      const differ = new Set(values).size > 1 && !["Answer", "Started"].includes(what);
      return el("tr", {}, el("th", { scope: "row" }, what, differ ? el("div", { class: "soft" }, "differs") : ""), ...values.map((value) => el("td", {}, value)));
    })),
  );
}

const MEASURES = { output_tokens_per_s: "output tokens/s", ttft: "TTFT", tpot: "TPOT", e2e: "end to end" };

// What `loadgen compare` says of two runs: the older one is "before".
function changes(found, letters) {
  const more = found.differences.length > 1;
  const rows = found.changes.map((change) => el("tr", {},
    el("th", { scope: "row" }, `${change.workload}, ${change.profile}`), el("td", { class: "num" }, String(change.concurrency)),
    el("td", {}, MEASURES[change.measure] ?? change.measure),
    el("td", { class: `num ${change.better === true ? "gain" : change.better === false ? "loss" : ""}` }, `${number(change.ratio)}×`),
    el("td", { class: "num" }, change.ci95 ? `${number(change.ci95[0])} to ${number(change.ci95[1])}` : "n/a"),
    el("td", {}, change.better === null ? "not sure" : change.better ? "surely better" : "surely worse")));
  $("changes").replaceChildren(el("section", { "aria-labelledby": "changed" }, el("h2", { id: "changed" }, `From ${letters[0]} to ${letters[1]}`),
    el("p", { class: "answer-big" }, found.sentence),
    el("p", {}, found.differences.length ? "What differs: " : "Made in the same way.", found.differences.map((d) => `${d.field} (${d.before} → ${d.after})`).join("; ")),
    more ? el("p", { class: "error" }, `The runs differ in ${found.differences.length} things, so no change can be put down to one of them.`) : null,
    ...found.notes.map((note) => el("p", { class: "soft" }, note)),
    el("details", {}, el("summary", {}, `All ${rows.length} changes`), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Changes" }, el("table", {},
      el("thead", {}, el("tr", {}, ...["where", "in flight", "measure", "after / before", "95 % interval", ""].map((text, i) => el("th", { scope: "col", class: [1, 3, 4].includes(i) ? "num" : null }, text)))),
      el("tbody", {}, ...rows))))));
}

function lines(runs) {
  const found = new Map();
  for (const run of runs) {
    for (const condition of run.summary.conditions) {
      const key = `${condition.workload}, ${condition.input_tokens} input tokens${condition.temperature ? `, temperature ${condition.temperature}` : ""}`;
      if (!found.has(key)) found.set(key, []);
      for (const [profile, finding] of Object.entries(condition.profiles)) found.get(key).push({ run, profile, finding });
    }
  }
  return found;
}

function section(key, entries, index) {
  const all = entries.flatMap(({ finding }) => finding.levels);
  const levels = [...new Set(all.map((level) => level.concurrency))].sort((a, b) => a - b);
  const box = el("div", { class: "chart", role: "img", "aria-label": `Speed-up on ${key}; the table below holds the figures` });
  const rows = entries.map(({ run, profile, finding }) => el("tr", {},
    el("th", { scope: "row" }, `${run.letter}: ${profile}`),
    ...levels.map((l) => {
      const level = finding.levels.find((one) => one.concurrency === l);
      const speedup = level?.valid ? level.speedup : null;
      const tone = speedup > 1.05 ? "gain" : speedup !== null && speedup < 0.95 ? "loss" : "";
      const span = level?.ci95 ? `95 % interval ${number(level.ci95[0])} to ${number(level.ci95[1])}` : null;
      return el("td", { class: `num ${tone}`, title: span }, level ? (level.valid ? (speedup === null ? "" : `${number(speedup)}×`) : "void") : "");
    }),
    el("td", {}, verdict(finding.break_even.output_tokens_per_s))));
  const made = el("section", { "aria-labelledby": `c${index}` }, el("h2", { id: `c${index}` }, key),
    el("p", { class: "soft" }, "Speed-up of output tokens per second over each run's own baseline; above 1 it pays."), box,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Figures of ${key}` }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "requests in flight"), ...levels.map((l) => el("th", { scope: "col", class: "num" }, String(l))), el("th", { scope: "col" }, "pays"))),
      el("tbody", {}, ...rows))));
  $("conditions").append(made);
  draw(box, entries.map(({ run, profile, finding }) => ({
    name: `${run.letter}: ${profile}`,
    points: finding.levels.filter((l) => l.valid && l.speedup !== null).map((l) => ({ level: l.concurrency, value: l.speedup, n: l.n })),
  })), { unit: "speed-up", reference: 1, levels });
}

async function begin() {
  head();
  if (names.length < 2) {
    complain($("problem"), new Error("Choose two runs or more in the list of runs."));
    return;
  }
  try {
    // The oldest is A.
    const loaded = (await Promise.all(names.map(load))).toSorted((a, b) => a.row.created_at.localeCompare(b.row.created_at));
    const runs = loaded.map((run, index) => ({ ...run, letter: LETTERS[index] }));
    facts(runs);
    $("page").href = `/side-by-side?${runs.map(({ row }) => `run=${encodeURIComponent(row.run)}`).join("&")}`;
    $("page").hidden = false;
    if (runs.length === 2) {
      const [before, after] = runs;
      changes(await api(`/api/compare?${new URLSearchParams({ before: before.row.run, after: after.row.run })}`), [before.letter, after.letter]);
    }
    [...lines(runs)].forEach(([key, entries], index) => section(key, entries, index));
  } catch (error) {
    complain($("problem"), error);
  }
}

begin();
