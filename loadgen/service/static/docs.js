import { $, api, complain, el, head } from "./common.js";

let spec = null;

const resolve = (schema) => (schema?.$ref ? spec.components.schemas[schema.$ref.split("/").pop()] : schema) ?? {};

function typeOf(schema) {
  if (schema?.$ref) return schema.$ref.split("/").pop();
  if (schema?.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema?.type === "array") return `list of ${typeOf(schema.items)}`;
  if (schema?.enum) return schema.enum.join(" | ");
  return schema?.const ?? schema?.type ?? "any";
}

function limits(schema) {
  const parts = [schema, ...(schema.anyOf ?? []), schema.items ?? {}];
  const found = (name) => parts.map((part) => part[name]).find((value) => value !== undefined);
  const words = [];
  if (found("minimum") !== undefined) words.push(`${found("minimum")} to ${found("maximum")}`);
  if (schema.default !== undefined && schema.default !== null) words.push(`default ${JSON.stringify(schema.default)}`);
  if (schema.description) words.push(schema.description);
  return words.join("; ");
}

function fields(names, caption) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {}, el("caption", {}, caption),
    el("tbody", {}, ...names.map(([name, schema]) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", {}, typeOf(schema)), el("td", { class: "soft" }, limits(schema)))))));
}

function route(path, method, operation) {
  const body = operation.requestBody?.content["application/json"]?.schema;
  const parameters = (operation.parameters ?? []).map((p) => [p.name, { description: p.description, ...p.schema }]);
  const answers = Object.entries(operation.responses).map(([status, answer]) => el("li", {}, el("b", {}, status), ` ${answer.description}`));
  return el("section", {},
    el("h2", {}, el("span", { class: "method" }, method.toUpperCase()), " ", el("code", {}, path)),
    el("p", {}, operation.description ?? ""),
    parameters.length ? fields(parameters, "Parameters") : null,
    body ? fields(Object.entries(resolve(body).properties ?? {}), "Body (JSON)") : null,
    el("details", {}, el("summary", {}, "Answers"), el("ul", {}, ...answers)));
}

async function begin() {
  head();
  try {
    spec = await api("/openapi.json");
  } catch (error) {
    complain($("problem"), error);
    return;
  }
  $("about").textContent = spec.info.description;
  const routes = Object.entries(spec.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => route(path, method, operation)));
  $("routes").replaceChildren(...routes);
}

begin();
