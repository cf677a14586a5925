import { $, api, complain, el, head, number, say, title, when } from "./common.js";

const demand = () => document.querySelector("[name=demand]:checked").value;

function showFields() {
  for (const field of document.querySelectorAll("[data-demand]")) {
    field.hidden = !field.dataset.demand.split(" ").includes(demand());
  }
}

function body() {
  const value = (id) => $(id).value.trim();
  const wrong = [...$("form").querySelectorAll(":invalid")].find((field) => field.labels && !field.closest("[hidden]"));
  if (wrong) {
    wrong.closest("details")?.setAttribute("open", "");
    wrong.focus();
    throw new Error(`${wrong.labels[0].textContent}: ${wrong.validationMessage}`);
  }
  const given = { slos: ["ttft", "tpot"].filter(value).map((id) => `${id}_p99=${value(id)}ms`), gpus_per_server: Number(value("gpus") || 1) };
  if (!given.slos.length) throw new Error("Give an objective: TTFT, TPOT or both.");
  if (demand() === "users") Object.assign(given, { users: Number(value("users")), think: `${value("think")}s` });
  if (demand() === "rate") given.rate = `${value("rate")}/s`;
  if (demand() !== "none") {
    Object.assign(given, { headroom: `${value("headroom") || 0}%`, spares: Number(value("spares") || 0) });
    if (value("mix")) given.mix = value("mix");
  }
  if (value("hour")) given.gpu_hour = Number(value("hour"));
  if (value("watts")) given.gpu_watts = Number(value("watts"));
  return given;
}

// The highest level that keeps the objectives: "8+" where none above was measured, "(unsure)" where the sample is small.
function ceiling(found) {
  const level = found.surely ?? found.by_estimate;
  if (level === null) return "none";
  return `${number(level)}${found.open_ended ? "+" : ""}${found.surely === null ? " (unsure)" : ""}`;
}

// "+": no more was measured; the 95 % interval where there is one.
function perServer(found) {
  if (found.per_server === null) return "none";
  const more = found.limited_by === "measured levels" ? "+" : "";
  if (found.surely === null) return `${number(found.per_server)}${more} (unsure)`;
  return `${number(found.per_server)}${more} (${found.at_most === null ? `surely ${number(found.surely)}` : `${number(found.surely)} to ${number(found.at_most)}`})`;
}

// A lower bound of what a server carries is an upper bound of GPUs; one working server and its spares are the fewest.
function gpus(offer) {
  const bound = offer.capacity.limited_by === "measured levels" && offer.fleet.gpus > offer.fleet.gpus_least;
  return `${bound ? "≤ " : ""}${offer.fleet.gpus}`;
}

function table(plan, offers) {
  const fleet = offers.some((offer) => offer.fleet);
  const unit = offers.find((offer) => offer.capacity)?.capacity.unit ?? "";
  const cost = offers.some((offer) => offer.fleet?.cost_per_million_tokens != null);
  const energy = offers.some((offer) => offer.fleet?.kwh_per_million_tokens != null);
  const columns = [
    ["in flight", (o) => ceiling(o.ceiling)],
    [`${unit || "load"} / server`, (o) => (o.capacity ? perServer(o.capacity) : "")],
    ...(fleet ? [
      ["servers", (o) => (o.fleet ? o.fleet.with_spares : "")],
      ["GPUs", (o) => (o.fleet ? gpus(o) : "")],
      [`${unit} / GPU`, (o) => (o.fleet ? number(o.fleet.per_gpu) : "")],
      ["GPUs if acceptance falls by a third", (o) => o.acceptance_a_third_lower?.fleet?.gpus ?? ""],
    ] : []),
    ...(cost ? [["cost / million tokens", (o) => (o.fleet ? number(o.fleet.cost_per_million_tokens) : "")]] : []),
    ...(energy ? [["kWh / million tokens", (o) => (o.fleet ? number(o.fleet.kwh_per_million_tokens) : "")]] : []),
  ];
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Settings" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "setting"), ...columns.map(([name]) => el("th", { scope: "col", class: "num wrap" }, name)))),
    el("tbody", {}, ...offers.map((offer) => el("tr", {}, el("th", { scope: "row" }, offer.setting, el("div", { class: "soft" }, offer.detail)),
      ...columns.map(([, of]) => el("td", { class: "num" }, String(of(offer)))))))));
}

function show(plan) {
  const files = `/runs/${encodeURIComponent(plan.run_id)}`;
  const conditions = new Map();
  for (const offer of plan.offers) {
    const key = `${offer.workload}, ${offer.input_tokens} input tokens${offer.temperature ? `, temperature ${offer.temperature}` : ""}`;
    conditions.set(key, [...(conditions.get(key) ?? []), offer]);
  }
  const advice = (offers) => plan.advice.find((one) => one.workload === offers[0].workload && one.input_tokens === offers[0].input_tokens && one.temperature === offers[0].temperature);
  $("result").replaceChildren(
    el("section", { "aria-labelledby": "plan-answer" }, el("h2", { id: "plan-answer", class: "unseen" }, "Answer"),
      el("p", { class: "answer-big" }, plan.answer),
      plan.mix ? el("p", {}, plan.mix.sentence) : null,
      el("div", { class: "actions" }, el("a", { class: "button main", href: `${files}/plan.html` }, "Open the plan"), el("a", { href: `${files}/plan.md` }, "plan.md"), el("a", { href: `${files}/plan.json` }, "plan.json"))),
    ...[...conditions].map(([key, offers]) => el("section", {}, el("h2", {}, key), table(plan, offers),
      advice(offers) ? el("p", {}, el("b", {}, `${advice(offers).setting ?? "No setting"}: `), advice(offers).reason) : null)),
    ...(plan.notes.length ? [el("section", {}, el("h2", {}, "To know"), el("ul", { class: "notices" }, ...plan.notes.map((note) => el("li", {}, note))))] : []),
  );
  say(plan.answer);
}

async function go(event) {
  event.preventDefault();
  complain($("problem"));
  $("result").replaceChildren();
  try {
    const asked = body();
    $("go").disabled = true;
    say("Planning");
    show(await api(`/api/runs/${encodeURIComponent($("run").value)}/plan`, { method: "POST", body: asked }));
    $("result").scrollIntoView({ block: "start" });
  } catch (error) {
    complain($("problem"), error);
  }
  $("go").disabled = false;
}

async function begin() {
  head();
  showFields();
  $("form").addEventListener("change", showFields);
  $("form").addEventListener("submit", go);
  try {
    const found = await api("/api/runs?limit=1000");
    const usable = found.runs.filter((run) => run.files.includes("summary.json"));
    const wanted = new URLSearchParams(location.search).get("run");
    $("run").replaceChildren(...usable.map((run) => el("option", { value: run.run, selected: run.run === wanted }, `${title(run)}, ${when(run.created_at)}`)));
    $("go").disabled = usable.length === 0;
    if (!usable.length) throw new Error("There is no finished run yet; start a sweep first.");
  } catch (error) {
    complain($("problem"), error);
  }
}

begin();
