// What every page needs: the API, elements made without HTML text, numbers as people read them.
export async function api(path, options = {}) {
  const { body, ...rest } = options;
  const init = { headers: { accept: "application/json" }, ...rest };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers["content-type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new Error("The service does not answer; is it still running?");
  }
  if (response.status === 401 && location.pathname !== "/login") {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Error(answer?.error ?? `The service answered ${response.status}.`);
  return answer;
}

// el("td", {class: "num"}, "text", child): text is always text, never HTML, whoever wrote it.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const $ = (id) => document.getElementById(id);

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "n/a";
  return value.toLocaleString("en", { maximumSignificantDigits: digits });
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export function when(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text;
  return date.toLocaleString([], { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}

export const tag = (state) => el("span", { class: `tag ${state}` }, state);

export const simulatedTag = () => el("span", { class: "tag simulated", title: "from a simulator, not from hardware" }, "SIMULATED");

export const title = (run) => {
  const profiles = run.profiles.filter((name) => name !== run.against);
  return `${profiles.join(", ")} on ${run.workloads.join(", ")}`;
};

export function say(text) {
  const box = $("said");
  if (box && box.textContent !== text) box.textContent = text;
}

export function complain(box, error) {
  box.textContent = error ? error.message : "";
}

// Calls `work` again and again, each time after the one before has ended; a page in the background rests.
export function repeat(work, secondsAfter) {
  let timer = 0;
  async function go() {
    clearTimeout(timer);
    const seconds = document.hidden ? 60 : secondsAfter(await work());
    timer = setTimeout(go, seconds * 1000);
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) go(); });
  go();
  return go;
}

export async function head() {
  for (const link of document.querySelectorAll(".top nav a")) {
    if (link.pathname === location.pathname && !link.hash) link.setAttribute("aria-current", "page");
  }
}
