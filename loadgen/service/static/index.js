import { $, api, complain, el, head, repeat, say, simulatedTag, tag, title, when } from "./common.js";

const chosen = new Set(new URLSearchParams(location.search).getAll("run"));
let options = null;

function chips(box, names, checked) {
  box.replaceChildren(...names.map(({ name, description }) => el(
    "label", { title: description },
    el("input", { type: "checkbox", value: name, checked: checked.includes(name) }), name,
  )));
}

const ticked = (id) => [...$(id).querySelectorAll("input:checked")].map((box) => box.value);

const levels = () => $("levels").value.split(",").map((part) => part.trim()).filter(Boolean);

const value = (id) => $(id).value.trim() || null;

function describe() {
  const quick = $("quick").checked;
  $("levels").placeholder = quick ? options.quick_levels : options.default_levels;
  $("levels-hint").textContent = `Comma-separated; empty takes ${$("levels").placeholder}.`;
  const engine = options.engines.find((one) => one.name === $("engine").value);
  $("engine-hint").textContent = engine?.description ?? "";
  $("url-field").hidden = $("engine").value !== "url";
  const profiles = ticked("profiles").filter((name) => name !== $("against").value);
  const count = levels().length || $("levels").placeholder.split(",").length;
  const repeats = Number($("repeats").value) || (quick ? 2 : 3);
  const cells = (profiles.length + 1) * ticked("workloads").length * count * repeats;
  $("size").textContent = profiles.length && cells ? `${cells}${value("k") || $("refine").checked ? " or more" : ""} cells` : "Choose a profile and a workload.";
  $("start").disabled = !(profiles.length && cells);
}

function body() {
  const whole = (id) => (value(id) === null ? null : Number(value(id)));
  const found = levels().map(Number);
  if (found.some((level) => !Number.isInteger(level) || level < 1)) {
    $("levels").focus();
    throw new Error("Requests in flight must be whole numbers above 0 with commas in between, like 1,4,16.");
  }
  const wrong = $("form").querySelector(":invalid");
  if (wrong) {
    $("more").open = true;
    wrong.focus();
    throw new Error(`${wrong.labels[0].textContent}: ${wrong.validationMessage}`);
  }
  const asked = {
    profiles: ticked("profiles"), workloads: ticked("workloads"), against: $("against").value,
    levels: found.length ? found : null, quick: $("quick").checked, engine: $("engine").value,
    repeats: whole("repeats"), window_s: whole("window"), max_tokens: whole("max-tokens"),
    k: value("k"), refine: $("refine").checked,
    hardware: value("hardware"), model: value("model"), seed: whole("seed"),
    url: $("engine").value === "url" ? value("url") : null,
  };
  return Object.fromEntries(Object.entries(asked).filter(([, given]) => given !== null));
}

async function start(event) {
  event.preventDefault();
  complain($("form-error"));
  $("start").disabled = true;
  try {
    const run = await api("/api/runs", { method: "POST", body: body() });
    location.assign(`/run/${run.run}`);
  } catch (error) {
    complain($("form-error"), error);
    $("start").disabled = false;
  }
}

function pick(run) {
  return el("input", {
    type: "checkbox", checked: chosen.has(run.run), "aria-label": `Side by side: ${run.run}`,
    onchange: (event) => {
      if (event.target.checked) chosen.add(run.run); else chosen.delete(run.run);
      offerCompare();
    },
  });
}

function offerCompare() {
  $("compare").disabled = chosen.size < 2 || chosen.size > 6;
  $("compare").textContent = chosen.size < 2 ? "Side by side" : `Side by side (${chosen.size})`;
  $("compare").title = chosen.size > 6 ? "Six runs at most" : "Choose two runs or more";
}

function row(run) {
  const said = run.answer ?? (run.reason || (run.state === "queued" ? `Waits, number ${run.queue_position} in the queue.` : ""));
  return el(
    "tr", {},
    el("td", { class: "pick" }, run.files.includes("summary.json") ? pick(run) : ""),
    el("th", { scope: "row" },
      el("a", { href: `/run/${run.run}` }, title(run)),
      el("div", { class: "soft" }, `${when(run.created_at)}, ${run.engine}${run.quick ? ", quick" : ""} `, run.simulated ? simulatedTag() : null)),
    el("td", {}, tag(run.state)),
    el("td", { class: "num" }, `${run.cells} / ${run.cells_planned}`, el("span", { class: "unseen" }, " cells")),
    el("td", { class: "answer" }, said),
  );
}

let shown = "";
async function list() {
  try {
    const query = new URLSearchParams({ q: $("words").value, limit: "200" });
    if ($("state").value) query.set("state", $("state").value);
    const found = await api(`/api/runs?${query}`);
    complain($("runs-error"), found.unreadable.length ? new Error(`Cannot be read: ${found.unreadable.join(", ")}`) : null);
    const text = JSON.stringify(found);
    if (text !== shown) {
      const focused = document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.getAttribute("href");
      const body = $("runs").tBodies[0];
      body.replaceChildren(...found.runs.map(row));
      if (focused && document.activeElement === document.body) {
        [...body.querySelectorAll("a, input")].find((e) => focused === (e.getAttribute("aria-label") ?? e.getAttribute("href")))?.focus();
      }
      shown = text;
    }
    const filtered = $("words").value || $("state").value;
    $("count").textContent = found.total ? `${found.total} ${found.total === 1 ? "run" : "runs"}${found.total > found.runs.length ? `, the newest ${found.runs.length} shown` : ""}` : "";
    $("empty").hidden = found.total > 0;
    $("runs").hidden = found.total === 0;
    $("empty").textContent = filtered ? "No run fits the filter." : "There is no run yet; start one above.";
    if (filtered) say(`${found.total} runs fit the filter`);
    return found.runs.some((run) => ["running", "queued", "stopping"].includes(run.state)) ? 2 : 10;
  } catch (error) {
    complain($("runs-error"), error);
    return 5;
  }
}

async function begin() {
  head();
  const again = repeat(list, (seconds) => seconds);
  let typing = 0;
  $("words").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(again, 150); });
  $("state").addEventListener("change", again);
  $("filter").addEventListener("submit", (event) => { event.preventDefault(); again(); });
  $("compare").addEventListener("click", () => {
    location.assign(`/compare?${[...chosen].map((run) => `run=${encodeURIComponent(run)}`).join("&")}`);
  });
  offerCompare();
  try {
    options = await api("/api/options");
  } catch (error) {
    complain($("form-error"), error);
    return;
  }
  $("version").textContent = options.version;
  $("logout").hidden = !options.needs_token;
  $("logout").addEventListener("click", async () => { await api("/api/logout", { method: "POST" }); location.assign("/login"); });
  chips($("profiles"), options.profiles.filter((one) => one.name !== "baseline"), ["ngram"]);
  chips($("workloads"), options.workloads, ["code-edit", "chat"]);
  const fill = (id, names, extra = []) => $(id).replaceChildren(...extra, ...names.map(({ name, description }) => el("option", { value: name, title: description }, name)));
  fill("engine", options.engines);
  fill("against", options.profiles);
  fill("hardware", options.hardware, [el("option", { value: "" }, `${options.default_hardware} (default)`)]);
  $("url-hint").textContent = `Allowed here: ${options.servers.join(", ")}. One URL per profile: baseline=URL,ngram=URL.`;
  $("form").addEventListener("input", describe);
  $("form").addEventListener("submit", start);
  describe();
}

begin();
