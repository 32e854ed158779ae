"use strict";
const token = location.hash.slice(1), page = document.getElementById("page"), live = document.getElementById("live");
const {apis, staleAfter} = JSON.parse(document.getElementById("settings").textContent), every = 3000, everyLoad = 10000;
const headers = {Authorization: "Bearer " + token};
const boxes = new Map();  // by deployment: what stays on the page while its figures change
let last = null, lastText = "", loads = null, spanName = "hour";

// Every text goes in as text: nothing that a server or a person wrote is ever markup.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "width" || name === "marginLeft") node.style[name] = value;
    else if (name === "onclick") node.addEventListener("click", value);
    else node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== "") node.append(child);
  return node;
}
const note = text => el("p", {class: "note"}, text);
const usd = value => "$" + value.toFixed(value < 100 ? 2 : 0);
function span(seconds) {
  const s = Math.max(0, Math.round(seconds)), days = Math.floor(s / 86400), h = Math.floor(s % 86400 / 3600), m = Math.floor(s % 3600 / 60);
  if (days) return `${days}d ${h}h`;
  if (h) return `${h}h ${m}m`;
  return m ? `${m}m ${s % 60}s` : `${s}s`;
}
const ago = seconds => seconds < 2 ? "now" : `${span(seconds)} ago`;
const moment = at => new Date(at * 1000).toLocaleString([], {month: "short", day: "numeric", hour: "2-digit", minute: "2-digit"});

const isUp = replica => ["up", "up, not serving", "up, not observed", "serving", "draining"].includes(replica.state);
const isPlace = replica => ["waiting", "hidden"].includes(replica.state);
function badge(replica) {
  if (replica.state === "serving") return ["serving", "is-good"];
  if (replica.boot === "failed") return ["boot failed", "is-bad"];
  if (replica.state === "up" && replica.boot === "serving") return ["serving, by its own report", "is-good"];
  if (replica.state === "up, not observed") return ["not observed", "is-bad"];
  if (replica.state === "up, not serving" && replica.boot === "serving") return ["does not answer", "is-bad"];
  if (replica.state === "up" || replica.state === "up, not serving") return [replica.boot ? "booting" : "granted", "is-waiting"];
  if (isPlace(replica)) return ["waiting for a slice", "is-waiting"];
  return [replica.state, ["dead", "refused"].includes(replica.state) ? "is-bad" : "is-idle"];
}
function meter(share, isHigh, text) {
  const percent = Math.max(0, Math.min(100, Math.round(share * 100)));
  return el("div", {}, el("div", {class: "meter", role: "progressbar", "aria-valuenow": percent, "aria-valuemin": 0,
    "aria-valuemax": 100, "aria-label": text}, el("i", {class: isHigh ? "is-high" : "", width: percent + "%"})), note(text));
}
function boot(replica) {
  const stage = replica.stage;
  if (!isUp(replica) || ["serving", "failed", ""].includes(replica.boot)) return null;
  if (!stage) return note(`${replica.boot}: ${replica.boot_detail}`);
  const left = stage.left_seconds === null ? "" : `, ${stage.is_least ? "at least " : "about "}${span(stage.left_seconds)} left`;
  if (stage.done === null || !stage.of) return note(`${stage.name}${left}: ${replica.boot_detail}`);
  return meter(stage.done / stage.of, false, `${stage.name} ${stage.done} of ${stage.of}${left}`);
}
function load(address, metrics) {
  const row = metrics.find(each => each.address === address || `${each.address}[0]` === address);
  if (!row) return [];
  if (row.silent) return [note(`Its metrics cannot be read: ${row.silent}`)];
  const reading = name => row.readings.find(each => each.name === name);
  const facts = [["requests_running", "running"], ["requests_waiting", "waiting"], ["ttft", "TTFT"], ["itl", "between tokens"]]
    .map(([name, label]) => [label, reading(name)]).filter(([, each]) => each)
    .map(([label, each]) => el("div", {}, el("dt", {}, label), el("dd", {}, each.shown.replace(/ \(n = [\d,]+\)$/, "").replaceAll("<=", "≤"))));
  const kv = reading("kv_cache_used");
  return [facts.length ? el("dl", {class: "facts"}, facts) : null,
    kv && typeof kv.value === "number" ? meter(kv.value, kv.grade === "bad" || kv.value >= .85, `KV cache ${kv.shown} in use`) : null];
}
function replicaBox(replica, metrics) {
  const [text, kind] = badge(replica);
  const place = [replica.accelerator_type, replica.zone, replica.provisioning, apis[replica.backend]].filter(Boolean).join(", ");
  const facts = [];
  const add = (label, value) => value && facts.push(el("div", {}, el("dt", {}, label), el("dd", {}, value)));
  add("slice", place);
  add("name", replica.slice_name);
  add("price", replica.usd_per_hour ? `${usd(replica.usd_per_hour)} an hour` : "");
  add("if granted", replica.usd_per_hour_granted ? `${usd(replica.usd_per_hour_granted)} an hour` : "");
  add("age", replica.age === null ? "" : span(replica.age));
  add("ends in", replica.ends_in === null ? "" : span(replica.ends_in));
  add("lapses in", replica.lapses_in === null ? "" : span(replica.lapses_in));
  add("address", replica.url);
  return el("div", {class: "replica"}, el("header", {}, el("b", {}, replica.address), el("span", {class: "badge " + kind}, text)),
    boot(replica), facts.length ? el("dl", {class: "facts"}, facts) : null, load(replica.address, metrics),
    replica.boot === "failed" && replica.boot_detail ? el("p", {class: "error"}, replica.boot_detail) : null,
    replica.undo ? el("p", {class: "error"}, `The change failed: ${replica.undo}`) : null,
    replica.serving === false && replica.detail ? note(replica.detail) : null);
}

const copy = (label, text) => el("button", {type: "button", onclick: async event => {
  const button = event.currentTarget;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch (error) { button.textContent = "Not copied: the browser refused"; }
  setTimeout(() => { button.textContent = label; }, 1500);
}}, label);

// A deployment's box is made once: what a person typed, opened or asked stays while the rest is drawn again.
function makeBox(name) {
  const box = {name, root: el("section", {class: "deployment", id: "deployment " + name, "aria-label": name, tabindex: -1})};
  for (const part of ["head", "state", "start", "plan", "events"]) box[part] = el("div");
  box.charts = el("div", {class: "charts"});
  box.plots = {};
  box.loadNote = note("The load appears here once a server answers.");
  box.about = note("TTFT and TPOT are upper bounds: the buckets of the server's own histogram.");
  box.spans = el("div", {class: "row", role: "group", "aria-label": "Time that the charts show"}, ["hour", "day"].map(each =>
    el("button", {type: "button", "data-span": each, "aria-pressed": String(each === spanName), onclick: () => choose(each)}, `Last ${each}`)));
  const fold = (title, ...children) => el("details", {}, el("summary", {}, title), ...children);
  box.log = makeLog(name);
  box.chat = makeChat(name);
  box.root.append(box.head, box.state, box.spans, box.loadNote, box.charts, box.about, box.startFold = fold("Start timeline", box.start),
    box.planFold = fold("Plan and drift", box.plan), box.eventFold = fold("Events", box.events), box.log.root, box.chat.root);
  return box;
}
function choose(name) {
  spanName = name;
  document.querySelectorAll("[data-span]").forEach(each => each.setAttribute("aria-pressed", String(each.dataset.span === name)));
  drawLoads();
}

const CHARTS = [
  ["Requests", "requests", "", [["running", "running"], ["waiting", "in the queue"]]],
  ["Finished requests", "requests/s", "/s", [["rate", "finished"]]],
  ["TTFT", "ms", "ms", [["ttft_p50", "p50", true], ["ttft_p95", "p95", true]]],
  ["TPOT", "ms", "ms", [["tpot_p50", "p50", true], ["tpot_p95", "p95", true]]],
  ["KV cache in use", "%", "%", [["kv", "fullest server"]]],
];
function drawLoads() {
  if (!loads) return;
  for (const box of boxes.values()) {
    const load = loads.deployments[box.name], columns = load && load[spanName], seconds = spanName === "hour" ? 3600 : 86400;
    box.hasLoad = Boolean(columns) && columns.running.concat(columns.kv).some(value => value !== null);
    box.loadNote.hidden = box.hasLoad && !load.error;
    box.loadNote.textContent = load && load.error ? load.error : "The load appears here once a server answers.";
    box.charts.hidden = box.spans.hidden = box.about.hidden = !box.hasLoad;
    if (!box.hasLoad) continue;
    for (const [title, label, unit, lines] of CHARTS) {
      const known = box.plots[title], hasFigures = lines.some(([key]) => columns[key].some(value => value !== null));
      if (known) known.root.hidden = !hasFigures;
      if (!hasFigures) continue;
      const chart = {title, x: {scale: "time", label: "", range: [loads.now - seconds, loads.now]},
        y: {label, unit, range: unit === "%" ? [0, 100] : undefined}, x_values: columns.at,
        lines: lines.map(([key, name, isBound], style) => ({label: name, style, bound: Boolean(isBound), values: columns[key], has_gaps: true}))};
      if (!box.plots[title]) {
        const host = el("div", {class: "chart", "data-height": 170});
        const keys = el("ul", {class: "keys"}, lines.map(([, name], style) => el("li", {}, el("canvas", {class: "swatch", "data-style": style}), name)));
        const root = el("div", {}, el("h3", {}, title), keys, host);
        const after = CHARTS.slice(CHARTS.findIndex(row => row[0] === title) + 1).map(row => box.plots[row[0]]).find(Boolean);
        box.charts.insertBefore(root, after ? after.root : null);
        keys.querySelectorAll("canvas").forEach(Charts.swatch);
        box.plots[title] = {root, plot: Charts.show(host, chart)};
      } else known.plot.update(chart);
    }
  }
}

function makeLog(name) {
  const search = el("input", {type: "search", "aria-label": `Search the log of ${name}`, placeholder: "Search", maxlength: 200});
  const count = el("span", {class: "note", role: "status"}), text = el("div", {class: "log", tabindex: 0, "aria-label": `Log of ${name}`});
  const root = el("details", {}, el("summary", {}, "Log"), el("div", {class: "row"}, search,
    el("button", {type: "button", onclick: () => read()}, "Read again"), count), text);
  let machines = [];
  function show() {
    const wanted = search.value.toLowerCase(), several = machines.length > 1, rows = [];
    let found = 0;
    for (const machine of machines) {
      if (several) rows.push(el("b", {}, machine.replica), "\n");
      if (machine.is_cut && !wanted) rows.push("(earlier lines are left out: tpudeploy logs shows them)\n");
      for (const line of machine.lines) {
        const at = wanted ? line.toLowerCase().indexOf(wanted) : -1;
        if (wanted && at < 0) continue;
        found++;
        if (at < 0) rows.push(line, "\n");
        else rows.push(line.slice(0, at), el("mark", {}, line.slice(at, at + wanted.length)), line.slice(at + wanted.length), "\n");
      }
    }
    text.replaceChildren(...rows);
    text.scrollTop = wanted ? 0 : text.scrollHeight;
    count.textContent = wanted ? `${found} ${found === 1 ? "line" : "lines"}` : "";
  }
  async function read() {
    count.textContent = "Reading";
    try {
      const reply = await fetch("/logs?deployment=" + encodeURIComponent(name), {headers, cache: "no-store"}), document_ = await reply.json();
      if (reply.ok) { machines = document_.machines; show(); }
      else { machines = []; text.replaceChildren(el("span", {class: "error"}, `${document_.message} ${document_.hint || ""}`)); count.textContent = ""; }
    } catch (error) { count.textContent = "The dashboard did not answer."; }
  }
  search.addEventListener("input", show);
  root.addEventListener("toggle", () => { if (root.open && !machines.length) read(); });
  return {root, search};
}

function makeChat(name) {
  const talk = el("div", {class: "talk", "aria-live": "polite", tabindex: 0, "aria-label": `Conversation with ${name}`}), status = el("span", {class: "note", role: "status"});
  const field = el("textarea", {rows: 2, maxlength: 20000, "aria-label": `Question to ${name}`, placeholder: "Ask the model. Enter sends, Shift+Enter starts a line."});
  const send = el("button", {type: "submit"}, "Send"), stop = el("button", {type: "button", disabled: true}, "Stop");
  const clear = el("button", {type: "button"}, "Clear"), form = el("form", {class: "ask"}, field, send, stop, clear);
  const about = note("A question is a request like any other: it counts as use for lifecycle.idle. The conversation is kept on this page alone.");
  const root = el("details", {}, el("summary", {}, "Chat"), about, talk, form, status);
  let messages = [], control = null;
  async function ask(question) {
    const answer = el("p", {class: "is-answer"}), said = [...messages, {role: "user", content: question}];
    talk.append(el("p", {class: "is-asked"}, question), answer);
    control = new AbortController();
    send.disabled = true; stop.disabled = false; status.textContent = "Waiting for the first token";
    let text = "", failure = "", done = null;
    try {
      const reply = await fetch("/chat", {method: "POST", headers: {...headers, "Content-Type": "application/json"},
        body: JSON.stringify({deployment: name, messages: said}), signal: control.signal});
      if (!reply.ok) failure = (await reply.text()).trim();
      else for await (const line of lines(reply.body)) {
        if (line.piece !== undefined) { text += line.piece; answer.textContent = text; status.textContent = ""; talk.scrollTop = talk.scrollHeight; }
        if (line.error) failure = `${line.error.message} ${line.error.hint || ""}`;
        if (line.done) done = line.done;
      }
    } catch (error) { failure = control.signal.aborted ? "Stopped." : "The dashboard did not answer."; }
    if (text) messages = [...said, {role: "assistant", content: text}];
    else { answer.remove(); field.value = field.value || question; }
    status.className = failure && failure !== "Stopped." ? "error" : "note";
    status.textContent = failure || (done ? `TTFT ${Math.round(done.ttft * 1000)} ms, ${done.tokens === null ? "" : `${done.tokens} tokens in `}${done.seconds.toFixed(1)} s` : "");
    send.disabled = false; stop.disabled = true;
  }
  form.addEventListener("submit", event => {
    event.preventDefault();
    const question = field.value.trim();
    if (!question || send.disabled) return;
    field.value = "";
    ask(question);
  });
  field.addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); } });
  stop.addEventListener("click", () => control && control.abort());
  clear.addEventListener("click", () => { if (control) control.abort(); messages = []; talk.replaceChildren(); status.textContent = ""; field.focus(); });
  return {root, field};
}
async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
}

const isOf = name => each => each.address === name || each.address.startsWith(name + "[");
function fillHead(box, each, data) {
  const row = data.cost && data.cost.rows.find(other => other.key === each.name), endpoint = data.endpoints && data.endpoints[each.name];
  const models = [...new Set(each.replicas.map(r => r.model).filter(Boolean))], slices = [...new Set(each.replicas.filter(isUp).map(r => r.accelerator_type).filter(Boolean))];
  const url = endpoint ? endpoint.url : "", labels = ["Copy curl", "Copy Python"];
  const fact = (label, value) => value ? el("div", {}, el("dt", {}, label), el("dd", {}, value)) : null;
  const hourly = row ? row.usd_per_hour : each.replicas.reduce((sum, r) => sum + (r.usd_per_hour || 0), 0);
  box.head.replaceChildren(...[el("h2", {}, each.name),
    el("dl", {class: "facts"}, fact("model", models.join(", ")), fact("slice", slices.join(", ")), fact("price", hourly ? `${usd(hourly)} an hour` : ""),
      fact("cost so far", row ? `${row.unknown_prices ? "at least " : ""}${usd(row.usd)}` : ""),
      fact("until its end", row && row.running && row.usd_to_end !== null ? `${usd(row.usd_to_end)} more` : ""),
      fact("ends in", each.ends_in === null || each.ends_in === undefined ? "" : span(each.ends_in))),
    url ? el("div", {class: "row"}, el("code", {}, url), copy("Copy URL", url), copy("Copy base URL", url + "/v1"), endpoint.lines.map((line, n) => copy(labels[n], line))) : null].filter(Boolean));
}
function fillState(box, each, data) {
  const metrics = data.metrics ? data.metrics.replicas : [], places = each.replicas.filter(isPlace), others = each.replicas.filter(r => !isPlace(r));
  const list = places.map(r => el("li", {}, `${r.address}: ${[r.zone, r.provisioning].filter(Boolean).join(", ")}` +
    (apis[r.backend] ? `, ${apis[r.backend]}` : "") + (r.cloud ? `, ${r.cloud}` : "") + (r.age === null ? "" : `, for ${span(r.age)}`) +
    (r.usd_per_hour_granted ? `, ${usd(r.usd_per_hour_granted)} an hour if granted` : "")));
  box.state.replaceChildren(...[each.error ? el("p", {class: "error"}, `${each.error.message} ${each.error.hint || ""}`) : null,
    others.map(replica => replicaBox(replica, metrics)),
    list.length ? [el("h3", {}, `Places asked: ${list.length}`), el("ul", {class: "places"}, list)] : null,
    each.underway ? el("p", {class: "warning"}, `${each.underway} is under way, or did not finish; to continue it: ${each.continue_with}`) : null,
    each.unended ? el("p", {class: "warning"}, each.unended) : null,
    each.lock ? el("p", {class: "warning"}, each.lock) : null].flat(Infinity).filter(Boolean));
}
function fillStart(box, data) {
  const timelines = (data.status.timelines || []).filter(isOf(box.name)).filter(each => each.seconds > 0 && each.phases.length);
  box.startFold.hidden = !timelines.length;
  box.start.replaceChildren(...timelines.flatMap(each => [el("h3", {}, `${each.address}, ${span(each.seconds)}`),
    ...each.phases.filter(phase => phase.seconds !== null).map(phase => el("div", {class: "start"},
      el("span", {}, `${phase.name}, ${span(phase.seconds)}${each.critical.includes(phase.name) ? " *" : ""}`),
      el("span", {}, el("i", {class: each.critical.includes(phase.name) ? "is-critical" : "",
        marginLeft: Math.min(99, 100 * phase.began / each.seconds) + "%", width: Math.min(100 - Math.min(99, 100 * phase.began / each.seconds), 100 * phase.seconds / each.seconds) + "%"})))),
    each.cache ? note(`Compile cache: ${each.cache}`) : null]).filter(Boolean), ...(timelines.length ? [note("* and hatched: what made the start long.")] : []));
}
// The attributes that a change of an existing slice changes, each with both values.
function differences(before, after, path = "") {
  if (!before || !after) return [];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(key => {
    const one = before[key], other = after[key], name = path + key;
    if (JSON.stringify(one) === JSON.stringify(other)) return [];
    const are = [one, other].every(value => value && typeof value === "object" && !Array.isArray(value));
    return are ? differences(one, other, name + ".") : [`${name}: ${JSON.stringify(one) ?? "not set"} → ${JSON.stringify(other) ?? "not set"}`];
  });
}
function fillPlan(box, data) {
  const at = data.profile_names.indexOf(box.name), parts = [];
  let title = "";
  if (at < 0) parts.push(note(`No profile here belongs to ${box.name}. tpudeploy dashboard PROFILE shows the plan and the drift of a profile.`));
  else {
    parts.push(note(`Read every five minutes for ${data.profiles[at]}.`));
    if (data.plan) {
      const changes = data.plan.resource_changes.filter(isOf(box.name)).filter(each => each.change.actions.join() !== "no-op");
      title = changes.length ? `${changes.length} planned ${changes.length === 1 ? "change" : "changes"}` : "no changes";
      parts.push(el("h3", {}, `Plan, ${ago(data.now - data.plan_at)}`), changes.length
        ? el("ul", {class: "places"}, changes.map(each => el("li", {}, `${each.address}: ${each.change.actions.join(" and ")}` + (each.action_reason ? ` (${each.action_reason.replaceAll("_", " ")})` : ""),
          el("ul", {}, differences(each.change.before, each.change.after).map(text => el("li", {}, text))))))
        : note("No changes. The running deployment matches its profile."));
    }
    if (data.drift) {
      const drift = (data.drift.resource_drift || []).filter(isOf(box.name));
      if (drift.length) title += `, drift`;
      parts.push(el("h3", {}, `Drift, ${ago(data.now - data.drift_at)}`), drift.length
        ? el("ul", {class: "places"}, drift.map(each => el("li", {}, `${each.address}: ${(each.change && each.change.actions || ["changed"]).join(" and ")} outside tpudeploy`)))
        : note("Nothing changed outside tpudeploy."));
    }
  }
  box.plan.replaceChildren(...parts);
  box.planFold.firstChild.replaceChildren("Plan and drift", el("span", {}, title));
}
function fillEvents(box, data) {
  const writes = (data.history || []).filter(each => each.deployment === box.name).flatMap(each => each.states.filter(state => state.written)
    .map(state => [state.written.at, `${state.written.operation} by ${state.written.by} wrote state ${state.serial}`]));
  const seen = data.events.filter(each => each.deployment === box.name).map(each => [each.at, each.text]);
  const rows = [...writes, ...seen].sort((one, other) => other[0] - one[0]).slice(0, 40);
  box.eventFold.hidden = !rows.length;
  box.events.replaceChildren(el("div", {class: "wide", tabindex: 0}, el("table", {class: "facts"}, el("thead", {}, el("tr", {}, ["when", "what"].map(text => el("th", {scope: "col"}, text)))),
    el("tbody", {}, rows.map(([at, text]) => el("tr", {}, el("td", {class: "moment"}, moment(at)), el("td", {}, text)))))));
  box.eventFold.firstChild.replaceChildren("Events", el("span", {}, rows.length ? `last ${moment(rows[0][0])}` : ""));
}

const top_ = el("div"), sections = el("div");
function draw(data) {
  const errors = Object.entries(data.errors).filter(([name]) => name !== "metrics" || data.metrics).map(([name, error]) =>
    el("p", {class: "error"}, `${name}: ${error.message} ${error.hint || ""}`));
  if (!data.status) return page.replaceChildren(...(errors.length ? errors : [note("Reading the deployments.")]));
  const deployments = data.status.deployments, replicas = deployments.flatMap(each => each.replicas);
  const kinds = replicas.map(replica => badge(replica)[1]), serving = kinds.filter(kind => kind === "is-good").length;
  const hourly = replicas.reduce((sum, replica) => sum + (replica.usd_per_hour || 0), 0);
  const box = (value, label) => el("div", {}, el("b", {}, value), label);
  top_.replaceChildren(...[data.status.emulated ? note("On the emulator: no chip is allocated and nothing is billed.") : null,
    el("div", {class: "sums"}, box(`${serving} of ${replicas.length}`, "slices serve"), box(usd(hourly), "an hour, at list price"),
      data.cost ? box(usd(data.cost.total.usd), "so far, by the ledger") : null, box(String(kinds.filter(kind => kind === "is-bad").length), "need attention")),
    deployments.length > 1 ? el("nav", {class: "jump", "aria-label": "Deployments"}, deployments.map(each => el("button", {type: "button", onclick: () => go(each.name)}, each.name))) : null,
    errors, deployments.length ? null : note("No deployment has a state here. `tpudeploy apply PROFILE` creates one.")].flat(Infinity).filter(Boolean));
  const names = deployments.map(each => each.name);
  for (const [name, old] of boxes) if (!names.includes(name)) { old.root.remove(); boxes.delete(name); }
  for (const each of deployments) {
    if (!boxes.has(each.name)) { boxes.set(each.name, makeBox(each.name)); sections.append(boxes.get(each.name).root); }
    const own = boxes.get(each.name);
    fillHead(own, each, data); fillState(own, each, data); fillStart(own, data); fillPlan(own, data); fillEvents(own, data);
    own.chat.root.hidden = !data.profile_names.includes(each.name);
  }
  if (!top_.isConnected) page.replaceChildren(top_, sections);
  drawLoads();
}

const go = name => { const root = boxes.get(name).root; root.scrollIntoView({block: "start"}); root.focus({preventScroll: true}); };
function nearest() {
  const all = [...boxes.values()], own = all.find(box => box.root.contains(document.activeElement));
  return own || all.find(box => box.root.getBoundingClientRect().bottom > 80) || all[0];
}
const keys = document.getElementById("keys");
document.getElementById("help").addEventListener("click", () => keys.showModal());
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const isField = ["INPUT", "TEXTAREA"].includes(event.target.tagName), box = nearest();
  if (event.key === "Escape" && isField) return event.target.blur();
  if (isField || !box) return;
  const names = [...boxes.keys()], at = names.indexOf(box.name);
  const open = (fold, field) => { fold.open = true; field.focus(); };
  const actions = {
    j: () => go(names[Math.min(names.length - 1, box.root.contains(document.activeElement) ? at + 1 : at)]), k: () => go(names[Math.max(0, at - 1)]),
    h: () => choose("hour"), d: () => choose("day"), "/": () => open(box.log.root, box.log.search),
    c: () => box.chat.root.hidden || open(box.chat.root, box.chat.field), "?": () => keys.showModal(),
  };
  if (Object.hasOwn(actions, event.key)) { event.preventDefault(); actions[event.key](); }
});

async function update() {
  try {
    const reply = await fetch("/data", {headers, cache: "no-store"});
    if (reply.status === 401) { live.textContent = "the address lacks its token: open the one that tpudeploy printed"; live.className = "live is-stale"; return; }
    const text = await reply.text();
    last = JSON.parse(text);
    last.readAt = Date.now();
    const shape = text.replace(/"now": [\d.]+/, "");
    if (shape !== lastText && !(document.getSelection() && document.getSelection().toString())) { lastText = shape; draw(last); }
    tick();
  } catch (error) { /* the next second shows for how long there was no answer */ }
}
async function updateLoad() {
  try {
    const reply = await fetch("/load", {headers, cache: "no-store"});
    if (reply.ok) { loads = await reply.json(); drawLoads(); }
  } catch (error) { /* the page says for how long nothing was read */ }
}
function tick() {
  if (!last || !last.status_at) return;
  const age = last.now - last.status_at + (Date.now() - last.readAt) / 1000, isStale = age > staleAfter;
  live.className = isStale ? "live is-stale" : "live";
  live.textContent = isStale ? `not read for ${span(age)}` : `read ${ago(age)}`;
}
update();
updateLoad();
setInterval(update, every);
setInterval(updateLoad, everyLoad);
setInterval(tick, 1000);
