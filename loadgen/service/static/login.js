import { $, api, complain } from "./common.js";

// Only a path of this service: `//host` would lead elsewhere.
function next() {
  const wanted = new URLSearchParams(location.search).get("next") ?? "/";
  return /^\/(?![\/\\])/.test(wanted) ? wanted : "/";
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  complain($("problem"));
  try {
    await api("/api/login", { method: "POST", body: { token: $("token").value } });
    location.assign(next());
  } catch (error) {
    complain($("problem"), error);
    $("token").select();
  }
});
