// The tab of calls: a list, and one call of it, both drawn from the data in the page; with --watch
// from the server that the page came from.
(() => {
const element = (id) => document.getElementById(id);
const head = element("calls-data") && JSON.parse(element("calls-data").textContent);
if (!head) return;

const [AFTER, BEFORE, TOKENS_AFTER, TOKENS_BEFORE, RULE, OUTCOME, USED] = [0, 1, 2, 3, 4, 5, 6];
const MARKS = { s: "shown", c: "cut short", o: "left out" };
const PAGE = 200; // rows of the list, or members of an array, that are drawn at once
const UNFOLDED = 40; // lines of an answer that are open at first
const number = (count) => count.toLocaleString("en");
const saved = (figures) => 1 - figures[AFTER] / Math.max(1, figures[BEFORE]);

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child != null));
  return made;
}

// The list.
let client = 0;
let shownRows = PAGE;
let sorted = { column: 3, descending: true };
const figuresOf = (call) => head.figures[client]?.[call];
const over = (figures) => {
  const { limit } = head.clients[client];
  return limit != null && figures[AFTER] > limit;
};
const ruleOf = (call) => {
  const figures = figuresOf(call);
  if (!figures || figures[OUTCOME] === "shaped") return figures?.[RULE] ?? "";
  return figures[OUTCOME];
};
const COLUMNS = [
  { title: "Tool", value: (call) => head.calls[call][0] },
  { title: "Rule", value: ruleOf },
  { title: "Server sent", number: (figures) => figures[BEFORE], text: size },
  { title: "Model reads", number: (figures) => figures[AFTER], text: size },
  { title: "About tokens", number: (figures) => figures[TOKENS_AFTER], text: number },
  { title: "Saved", number: saved, text: (share) => `${Math.round(share * 100)}%` },
  { title: "Used values lost", number: (figures) => figures[USED]?.[2] ?? 0, text: number },
];

const several = head.calls.some((call) => call[1] !== head.calls[0][1]);
const words = head.calls.map((call) => call.join(" ").toLowerCase());
const headings = COLUMNS.map(({ title, number }, column) => {
  const button = make("button", { type: "button", textContent: title });
  button.addEventListener("click", () => {
    const again = sorted.column === column;
    sorted = { column, descending: again ? !sorted.descending : Boolean(number) };
    drawList();
  });
  return make("th", { scope: "col", className: number ? "number" : "" }, button);
});
element("rows").tHead.rows[0].append(...headings);

function compare(one, other) {
  const { value, number } = COLUMNS[sorted.column];
  const of = number ? (call) => (figuresOf(call) ? number(figuresOf(call)) : -1) : value;
  const [a, b] = [of(one), of(other)];
  return (number ? a - b : a.localeCompare(b)) * (sorted.descending ? -1 : 1) || one - other;
}

let listed = [];
function drawList() {
  const query = element("filter").value.trim().toLowerCase();
  const fits = (call) =>
    !query || words[call].includes(query) || ruleOf(call).toLowerCase().includes(query);
  listed = head.calls.map((_, call) => call).filter(fits).sort(compare);
  headings.forEach((heading, column) => {
    const order = sorted.descending ? "descending" : "ascending";
    if (column === sorted.column) heading.setAttribute("aria-sort", order);
    else heading.removeAttribute("aria-sort");
  });
  element("rows").tBodies[0].replaceChildren(...listed.slice(0, shownRows).map(row));
  const rest = listed.length - Math.min(shownRows, listed.length);
  element("more").hidden = !rest;
  element("more").textContent = `Show ${number(Math.min(rest, PAGE))} more of ${number(rest)}`;
  const sum = listed.reduce((total, call) => total + (figuresOf(call)?.[AFTER] ?? 0), 0);
  element("found").textContent = `${number(listed.length)} of ${number(head.calls.length)} calls, ${size(sum)} read`;
}

function row(call) {
  const [tool, server, , words] = head.calls[call];
  const figures = figuresOf(call);
  const link = make("a", { href: `#calls/${call}`, textContent: several && server ? `${server}: ${tool}` : tool });
  const first = make("th", { scope: "row" }, link, make("div", { className: "arguments", textContent: words }));
  const cells = COLUMNS.slice(1).map(({ number, value, text }) => {
    if (!number) return make("td", { textContent: value(call) });
    const cell = make("td", { textContent: figures ? text(number(figures)) : "–" });
    cell.dataset.value = figures ? number(figures) : "";
    return cell;
  });
  if (figures && over(figures)) cells[2].append(make("div", { className: "arguments", textContent: "cut by the client" }));
  return make("tr", {}, first, ...cells);
}

// One call.
let open = null; // its number
let answer = null; // what is drawn of it

async function detailOf(call) {
  if (head.live) {
    const response = await fetch(`call/${call}?client=${client}`);
    return response.ok ? response.json() : { error: await response.text() };
  }
  const stored = element(`call-${call}`);
  if (!stored) return null;
  const { trees, views, of } = JSON.parse(stored.textContent);
  const view = views[of[client]];
  return { ...view, tree: trees[view.tree] };
}

async function drawCall() {
  const call = open;
  const detail = await detailOf(call);
  if (call !== open) return; // another one was opened meanwhile
  const [tool, server, file, words] = head.calls[call];
  element("call-title").textContent = `${tool}(${words})`;
  answer = null;
  for (const id of ["facts", "source", "read", "legend"]) element(id).replaceChildren();
  element("hits").textContent = "";
  const place = make("p", { textContent: `${server ? `${server}, ` : ""}${file}` });
  element("facts").append(place);
  if (!detail || detail.error) {
    const why = detail?.error ?? `This page has no room for this answer. To see it: mcp-abridge explain ${file}, or replay --watch.`;
    element("facts").append(make("p", { textContent: why }));
    return;
  }
  facts(detail, figuresOf(call));
  element("read").append(...reading(detail));
  answer = new Answer(detail);
  element("source").replaceChildren(...answer.draw());
  element("legend").replaceChildren(...answer.legend());
}

function facts(detail, figures) {
  const applies = detail.rules.find((rule) => rule.applies && rule.place);
  const rule = applies ? `Rule ${applies.name} (${applies.place}) applies` : detail.rule ? "No rule applies, so the budget does" : "No rule applies, and no budget";
  const lines = [`${rule}. Outcome: ${detail.outcome}. ${detail.form ? `The answer is ${detail.form}.` : ""}`];
  if (figures) {
    const tokens = `about ${number(figures[TOKENS_BEFORE])} and ${number(figures[TOKENS_AFTER])} tokens`;
    lines.push(`Server sent ${size(figures[BEFORE])}, the model reads ${size(figures[AFTER])} (${tokens}).`);
    if (over(figures)) lines.push(`That is over this client’s limit of ${size(head.clients[client].limit)}: it ${head.clients[client].beyond}.`);
  }
  for (const warning of detail.warnings) lines.push(`Warning (${warning.kind}): ${warning.said}`);
  lines.push(...detail.log.map((line) => `Log: ${line}`));
  element("facts").append(...lines.map((textContent) => make("p", { textContent })));
  const steps = detail.steps.map((step, index) => {
    const took = index ? detail.steps[index - 1].visible - step.visible : 0;
    return [step.step, size(step.visible), index ? size(took) : "", [...step.missing, step.said].filter(Boolean).join("; ")];
  });
  table("Steps of the rule", ["Step", "Bytes after it", "It took", "Paths that matched nothing, and messages"], steps);
  const used = detail.used.map((each) => [each.value, each.path, each.user, { shown: "shown", view: "in a view or page", lost: "lost" }[each.place]]);
  table("Values that later calls used", ["Value", "Where", "Used by", "Now"], used);
}

function table(caption, titles, rows) {
  if (!rows.length) return;
  const line = (cells, tag) => make("tr", {}, ...cells.map((cell, index) => make(tag, { textContent: String(cell).slice(0, 300), className: tag === "td" && /^[\d.]+ [kMG]?B$/.test(cell) ? "number" : "" })));
  const headings = make("tr", {}, ...titles.map((textContent) => make("th", { scope: "col", textContent })));
  const drawn = make("table", {}, make("caption", { textContent: caption }), make("thead", {}, headings), make("tbody", {}, ...rows.map((cells) => line(cells, "td"))));
  element("facts").append(make("div", { className: "scroll" }, drawn));
}

function reading(detail) {
  return detail.texts.map((textContent, index) => {
    const label = detail.texts.length > 1 ? `Text ${index + 1} of ${detail.texts.length}` : "The text";
    const text = make("pre", { textContent, tabIndex: 0 });
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", label);
    return text;
  });
}

// The server's answer as a tree, of which only what is open is drawn.
class Answer {
  constructor({ tree, marks }) {
    this.marks = marks;
    this.leaves = []; // [name, text] in order
    this.counts = { s: [0], c: [0], o: [0] }; // of the marks before each leaf
    for (const mark of marks) for (const each in this.counts) {
      this.counts[each].push(this.counts[each].at(-1) + (mark === each));
    }
    this.lines = Array.isArray(tree) && tree[0] !== "{" && tree[0] !== "[";
    this.root = this.lines ? this.ofLines(tree) : this.read("", tree);
    this.at = -1;
  }

  ofLines(lines) {
    this.leaves = lines.map((line, index) => [index + 1, line]);
    const members = lines.map((text, index) => ({ name: index + 1, text, from: index, to: index + 1 }));
    return { name: "", members, from: 0, to: lines.length, open: true };
  }

  read(name, node) {
    const from = this.leaves.length;
    if (typeof node === "string") {
      this.leaves.push([name, node]);
      return { name, text: node, from, to: from + 1 };
    }
    const members = [];
    const [kind] = node;
    if (kind === "{") for (let at = 1; at < node.length; at += 2) members.push(this.read(node[at], node[at + 1]));
    else for (let at = 1; at < node.length; at += 1) members.push(this.read(at - 1, node[at]));
    return { name, kind, members, from, to: this.leaves.length };
  }

  // Open the first members, as far as a few lines go.
  unfold(node, lines) {
    for (const member of node.members ?? []) {
      if (!member.members || lines <= 0 || !member.details) continue;
      this.fill(member, member.details.lastElementChild);
      member.details.open = true;
      lines = this.unfold(member, lines - Math.min(member.members.length, PAGE) - 1);
    }
    return lines;
  }

  count(mark, { from, to }) {
    return this.counts[mark][to] - this.counts[mark][from];
  }

  draw() {
    const list = make("ul", {});
    if (this.root.members) this.fill(this.root, list);
    else list.append(this.item(this.root));
    this.unfold(this.root, UNFOLDED);
    return [list];
  }

  legend() {
    return Object.entries(MARKS).map(([mark, words]) =>
      make("span", { className: mark, textContent: `${words}: ${number(this.count(mark, this.root))}` }));
  }

  // Draw the members of a node up to one, in steps.
  fill(node, list, upTo = 0) {
    node.list ??= list;
    node.drawn ??= 0;
    const end = Math.min(node.members.length, Math.max(node.drawn ? node.drawn : PAGE, Math.ceil((upTo + 1) / PAGE) * PAGE));
    node.rest?.remove();
    node.list.append(...node.members.slice(node.drawn, end).map((member) => this.item(member)));
    node.drawn = end;
    const rest = node.members.length - end;
    if (!rest) return;
    const button = make("button", { type: "button", textContent: `Show ${number(Math.min(rest, PAGE))} more of ${number(rest)}` });
    button.addEventListener("click", () => this.fill(node, list, end));
    node.rest = make("li", {}, button);
    node.list.append(node.rest);
  }

  item(node) {
    const name = node.name === "" ? null : make("span", { className: "name", textContent: this.lines ? `${node.name} ` : `${node.name}: ` });
    if (!node.members) {
      const mark = this.marks[node.from];
      const words = make("span", { className: "hidden", textContent: `${MARKS[mark]}: ` });
      node.drawnAs = make("li", { className: mark, tabIndex: -1 }, words, name, make("span", { textContent: node.text }));
      return node.drawnAs;
    }
    const [all, shown, cut] = [node.to - node.from, this.count("s", node), this.count("c", node)];
    const mark = shown === all ? "s" : shown + cut ? "c" : "o";
    const kind = node.kind === "[" ? `[${number(node.members.length)}]` : `{${number(node.members.length)}}`;
    const words = `${kind} ${number(shown)} of ${number(all)} shown${cut ? `, ${number(cut)} cut short` : ""}`;
    const first = this.leaves[node.from][1].slice(0, 60);
    const summary = make("summary", {}, name, make("span", { className: "count", textContent: `${words} · ${first}` }));
    const list = make("ul", {});
    node.details = make("details", {}, summary, list);
    node.details.addEventListener("toggle", () => node.details.open && node.drawn == null && this.fill(node, list));
    return make("li", { className: mark === "s" ? "s" : mark === "o" ? "o" : "" }, node.details);
  }

  // Open what leads to a leaf, and return its element.
  reveal(leaf) {
    let node = this.root;
    while (node.members) {
      const at = node.members.findIndex((member) => leaf < member.to);
      if (node.details) {
        if (node.drawn == null) this.fill(node, node.details.lastElementChild, at);
        node.details.open = true;
      }
      if (at >= node.drawn) this.fill(node, node.list, at);
      node = node.members[at];
    }
    return node.drawnAs;
  }

  find(query) {
    const fits = ([name, text]) => text.toLowerCase().includes(query) || String(name).toLowerCase().includes(query);
    const hits = this.leaves.flatMap((leaf, index) => (fits(leaf) ? [index] : []));
    if (!hits.length) return "not in the server’s answer";
    const next = hits.find((hit) => hit > this.at) ?? hits[0];
    this.at = next;
    element("source").querySelector(".found")?.classList.remove("found");
    const found = this.reveal(next);
    found.classList.add("found");
    found.scrollIntoView({ block: "center" });
    const shown = hits.filter((hit) => this.marks[hit] !== "o").length;
    return `${number(hits.indexOf(next) + 1)} of ${number(hits.length)}, ${MARKS[this.marks[next]]}; ${number(shown)} of them shown or in part`;
  }
}

// What is chosen.
function route() {
  const [tab, call] = location.hash.slice(1).split("/");
  const given = tab === "calls" && call !== undefined && head.calls[call] !== undefined;
  element("list").hidden = given;
  element("call").hidden = !given;
  const before = open;
  open = given ? Number(call) : null;
  if (given) drawCall().then(() => before !== open && element("call-title").focus({ preventScroll: true }));
  else if (before !== null) element("rows").querySelector(`a[href="#calls/${before}"]`)?.focus();
}

function step(by) {
  const at = listed.indexOf(open) + by;
  if (listed[at] !== undefined) location.hash = `#calls/${listed[at]}`;
}

element("client").append(...head.clients.map(({ label }, value) => make("option", { value, textContent: label })));
element("client").addEventListener("change", async (event) => {
  client = Number(event.target.value);
  drawList();
  if (head.live) await follow();
  else if (open !== null) await drawCall();
});
element("filter").addEventListener("input", () => { shownRows = PAGE; drawList(); });
element("more").addEventListener("click", () => { shownRows += PAGE; drawList(); });
element("previous").addEventListener("click", () => step(-1));
element("next").addEventListener("click", () => step(1));
for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());
element("find").addEventListener("submit", () => {
  const query = element("text").value.trim().toLowerCase();
  element("hits").textContent = query && answer ? answer.find(query) : "";
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && open !== null) location.hash = "#calls";
});
window.addEventListener("hashchange", route);

// With --watch: the open call at once, then the figures of the list, marked until they are there.
let stale = 0;
async function follow() {
  const now = ++stale;
  element("rows").classList.add("stale");
  element("found").textContent = "figures follow …";
  if (open !== null) await drawCall();
  const response = await fetch(`figures?client=${client}`);
  if (now !== stale || !response.ok) return;
  const { calls, figures, stale: late } = await response.json();
  if (late) return; // the newer version follows
  head.calls = calls;
  head.figures[client] = figures;
  words.splice(0, words.length, ...calls.map((call) => call.join(" ").toLowerCase()));
  element("rows").classList.remove("stale");
  drawList();
}
function tell(mistakes) {
  element("mistakes").replaceChildren(...mistakes.map((textContent) => make("li", { textContent })));
  element("mistakes").hidden = !mistakes.length;
}
let version;
async function look() {
  try {
    const state = await (await fetch("version")).json();
    if (state.version !== version) {
      version = state.version;
      tell(state.mistakes);
      follow();
    }
    setTimeout(look, 250);
  } catch {
    tell(["The command that wrote this page has ended; what it shows is as it was."]);
  }
}
if (head.live) look();
drawList();
route();
})();
