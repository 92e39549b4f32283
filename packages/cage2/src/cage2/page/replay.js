"use strict";
/* cage2Replay(root, data, map, options) draws one or two games of CAGE 2 into an empty element and returns a handle.
   data: the JSON of `cage2.page.data_of`; map: the text of map.svg.
   options: step (0), show ("true" or "saw"), onChange(step, show), keys (the element whose keys step; document).
   handle: go(step), look(show), stop(), remove(). */
const cage2Replay = (() => {
  const LEVELS = ["none", "seen", "user", "priv"], ZONES = ["Enterprise", "Operational", "User"], AGENTS = ["blue", "green", "red"];
  const RECORD = ["–", "unknown", "user", "privileged"], TRUTH = ["–", "scanned", "user", "privileged"], ACTIVITY = ["", "scan", "exploit"];
  const ORDER = [8, 9, 10, 11, 12, 1, 2, 3, 0, 7, 4, 5, 6], WIRES = [[9, 2], [10, 2], [11, 1], [12, 1], [3, 7]];
  const MONITOR = 0, SERVER = 7, FOOTHOLD = 8, ROLES = { [MONITOR]: "monitor", [FOOTHOLD]: "red’s foothold" };
  /* upper left corners of the cards in the order of the hosts; zones (x, y, width, height) in the order of ZONES */
  const WIDE = { width: 860, height: 452, card: [112, 58], most: 4, gate: [581, 227], zones: [[302, 8, 270, 436], [590, 8, 262, 436], [8, 8, 276, 436]],
    at: [[450, 348], [312, 302], [312, 94], [450, 198], [730, 72], [730, 198], [730, 324], [600, 198], [20, 198], [160, 48], [160, 140], [160, 256], [160, 348]] };
  const TALL = { width: 360, height: 640, card: [104, 56], most: 3, gate: [180, 420], zones: [[4, 216, 352, 196], [4, 428, 352, 200], [4, 4, 352, 196]],
    at: [[12, 326], [128, 246], [244, 246], [128, 326], [12, 544], [128, 544], [244, 544], [128, 456], [12, 84], [244, 34], [244, 116], [128, 34], [128, 116]] };
  const ICONS = { first: "M2 3h2v10H2zM9 3v10L4 8zM14 3v10L9 8z", back: "M4 3h2v10H4zM12 3v10L6 8z", play: "M4 2.500v11L13 8z", pause: "M4 3h3v10H4zM9 3h3v10H9z",
    next: "M10 3h2v10h-2zM4 3v10L10 8z", end: "M12 3h2v10h-2zM7 3v10L12 8zM2 3v10L7 8z" };

  const into = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const make = (tag, attributes = {}, ...children) => into(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => into(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const number = value => (Math.abs(value) < 0.05 ? "0.0" : value.toFixed(1).replace("-", "−"));
  const short = value => (value % 1 ? number(value) : String(value).replace("-", "−"));
  const brief = name => { const last = name.split("/").pop(); return last.length > 14 ? last.slice(0, 13) + "…" : last; };
  const pen = document.createElement("canvas").getContext("2d");
  const width = (words, weight = 400) => { pen.font = `${weight} 12px system-ui, sans-serif`; return pen.measureText(words).width; };
  const ticks = (low, high, count) => {
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find(factor => factor * power >= rough * 0.999) * power;
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => Math.round((first + i) * step * 10) / 10 || 0);
  };
  /* red's access against blue's record: none, user or privileged; known ports are no access */
  const differs = (step, h) => h !== FOOTHOLD && (step.held[h] >= 2 ? step.held[h] : 0) !== step.status[h];
  /* red's way from User0 around the cards */
  const route = (plan, h) => {
    const [x, y] = plan.at[h];
    if (plan === WIDE) {
      const from = [132, 227], to = [x - 2, y + 29];
      if (h > FOOTHOLD) return [from, [146, 227], [146, to[1]], to];
      if (h === 3) return [from, to];
      if (h < 3) { const lane = h ? 298 : 437; return [from, [lane, 227], [lane, to[1]], to]; }
      const lane = h === SERVER ? 586 : 721, end = h === SERVER ? [to[0], to[1] + 14] : to;
      return [from, [437, 227], [437, 280], [lane, 280], [lane, end[1]], end];
    }
    const from = [104, 140], middle = x + 52, to = [middle, y - 2];
    if (h > FOOTHOLD) return [[116, 112], [122, 112], [122, y + 28], [x - 2, y + 28]];
    if (h === 0) return [from, [104, y - 2]];
    if (h < 4) { const turn = h === 3 ? 314 : 232; return [from, [104, turn], [middle, turn], to]; }
    if (h === SERVER) return [from, [104, 314], [122, 314], [122, 443], [middle - 24, 443], [middle - 24, y - 2]];
    return [from, [104, 314], [122, 314], [122, 530], [middle, 530], to];
  };
  /* a line with round corners */
  const rounded = points => points.reduce((path, point, i) => {
    if (i === 0 || i === points.length - 1) return `${path}${i ? "L" : "M"}${point}`;
    const towards = ([x, y]) => { const far = Math.hypot(x - point[0], y - point[1]) || 1, part = Math.min(10, far / 2) / far; return [point[0] + (x - point[0]) * part, point[1] + (y - point[1]) * part]; };
    return `${path}L${towards(points[i - 1])}Q${point} ${towards(points[i + 1])}`;
  }, "");
  const badge = (level, saw) => (level ? [level === 3 ? svg("rect", { x: -9, y: -9, width: 18, height: 18, rx: 2 }) : svg("circle", { r: 9 }), svg("text", { y: 4 }, ["", saw ? "?" : "s", "U", "P"][level])] : []);
  const decoy = (name, x, y) => svg("g", { class: "decoy", transform: `translate(${x} ${y})` }, svg("rect", { width: 21, height: 16, rx: 3 }), svg("text", { x: 10.5, y: 12.5 }, name.slice(0, 2)));
  const sign = (wide, ...drawn) => { const node = svg("svg", { class: "map sign", viewBox: `0 0 ${wide} 20`, "aria-hidden": "true" }, ...drawn); node.style.width = `${wide / 16}rem`; return node; };
  const level = (which, saw) => sign(20, svg("g", { class: `a-${LEVELS[which]}` }, svg("g", { class: "badge", transform: "translate(10 10)" }, ...badge(which, saw))));
  const icon = name => `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;
  const PAGE = `<div class="column">
<section class="panel o1"><header><h2>Network</h2><div class="switch show" role="group" aria-label="The map shows"><button type="button" data-show="true">what was true</button><button type="button" data-show="saw">what blue saw</button></div></header><div class="maps"></div><ul class="legend"></ul></section>
<section class="panel dock o2"><div class="controls">${[["first", "First step"], ["back", "Previous step"], ["play", "Play"], ["next", "Next step"], ["end", "Last step"]].map(([name, label]) => `<button type="button" class="icon" data-go="${name}" aria-label="${label}">${icon(name)}</button>`).join("")}<output></output><button type="button" data-go="apart" hidden></button><span class="hint"><kbd>←</kbd> <kbd>→</kbd> step · <kbd>shift</kbd> <kbd>←</kbd> <kbd>→</kbd> next change of access · <kbd>space</kbd> play</span></div><input type="range" min="0" value="0" aria-label="Step of the game"></section>
<section class="panel o4"><header><h2>Reward</h2><p>click to go to a step</p></header><div class="chart"></div></section>
</div><div class="column">
<section class="panel o3 acts"><header><h2>Actions in this step</h2><p class="reward"></p></header></section>
<section class="panel o5"><header><h2>What blue saw, what was true</h2><p class="count"></p></header><div class="switch whose" role="group" aria-label="Agent of the table"></div><table><thead><tr><th scope="col">Host</th><th scope="col">Blue saw</th><th><span class="hidden">Differs</span></th><th scope="col">True</th></tr></thead><tbody></tbody></table><p class="note">Bold: activity in this step. User0 is red’s foothold and is not counted. A sign ≠ marks a host whose record is not what red holds.</p></section>
</div>`;

  return (root, data, mapText, { step: start = 0, show = "true", onChange = () => {}, keys = document } = {}) => {
    const games = data.games, two = games.length > 1, last = games[0].steps.length - 1, names = games.map(game => brief(game.agent));
    const apart = two ? games[0].steps.findIndex((step, t) => t && step.action !== games[1].steps[t].action) : -1;
    const narrow = matchMedia("(max-width: 48rem)"), ended = new AbortController(), { signal } = ended;
    let now = 0, timer = 0, whose = 0, cursor = null, place = t => t;
    root.innerHTML = PAGE;
    root.classList.add("replay");
    root.classList.toggle("two", two);
    const $ = selector => root.querySelector(selector), $$ = selector => [...root.querySelectorAll(selector)];
    const slider = $("input"), output = $("output");
    slider.max = last;

    const actionsOf = step => make("div", { class: "actions" }, ...AGENTS.map(who => make("div", { class: who },
      make("h3", {}, who[0].toUpperCase() + who.slice(1)), make("p", {}, step[who].words), make("small", {}, step[who].note))));
    const boxes = games.map((game, index) => {
      const box = make("div", {}, ...(two ? [make("h3", { title: game.agent }, names[index], make("span"))] : []));
      box.insertAdjacentHTML("beforeend", mapText);
      const map = box.querySelector("svg"), template = map.querySelector(".host"), id = `head${index}${Math.random().toString(36).slice(2)}`;
      map.querySelector("marker").id = id;
      map.querySelector(".move").setAttribute("marker-end", `url(#${id})`);
      data.hosts.forEach(name => {
        const host = template.cloneNode(true);
        host.querySelector(".name").textContent = name;
        map.querySelector(".hosts").append(host);
      });
      template.remove();
      $(".maps").append(box);
      return { box, map };
    });

    /* positions: once, and when the window becomes narrow or wide */
    function layout(plan, { map }) {
      const [w, h] = plan.card, moveTo = (node, x, y) => node.setAttribute("transform", `translate(${x} ${y})`);
      const sized = (node, box) => ["x", "y", "width", "height"].forEach((name, i) => box[i] === null || node.setAttribute(name, box[i]));
      map.setAttribute("viewBox", `0 0 ${plan.width} ${plan.height}`);
      map.querySelectorAll(".zone").forEach((zone, i) => {
        const [x, y, wide, high] = plan.zones[i], text = zone.querySelector("text");
        sized(zone.querySelector(".area"), [x, y, wide, high]);
        sized(zone.querySelector(".ring"), [x + 3, y + 3, wide - 6, high - 6]);
        text.setAttribute("x", x + 12);
        text.setAttribute("y", y + 22);
      });
      map.querySelectorAll(".wire").forEach((wire, i) => {
        const [[ax, ay], [bx, by]] = WIRES[i].map(host => plan.at[host]), y1 = ay + h / 2, y2 = by + h / 2;
        wire.setAttribute("d", plan === WIDE ? `M${ax + w} ${y1}C${ax + w + 26} ${y1} ${bx - 26} ${y2} ${bx} ${y2}` : `M${ax + w / 2} ${y1}L${bx + w / 2} ${y2}`);
      });
      moveTo(map.querySelector(".gate"), ...plan.gate);
      const [x, y] = plan.at[SERVER];
      moveTo(map.querySelector(".ot"), x + (plan === WIDE ? 8 : w + 12), y + (plan === WIDE ? -11 : 26));
      map.querySelectorAll(".host").forEach((host, i) => {
        moveTo(host, ...plan.at[i]);
        sized(host.querySelector(".card"), [null, null, w, h]);
        sized(host.querySelector(".ring"), [null, null, w + 8, h + 8]);
        host.querySelector(".strip").setAttribute("d", `M6 1h4v${h - 2}h-4a5 5 0 0 1-5-5V6a5 5 0 0 1 5-5z`);
        moveTo(host.querySelector(".badge"), w - 3, 1);
        moveTo(host.querySelector(".differs"), w + 1, 27);
      });
    }

    /* a step: classes and texts */
    function drawMap({ map }, plan, step) {
      const saw = show === "saw", access = `${step.open ? "open" : "closed"} to red`, words = [];
      map.classList.toggle("saw", saw);
      map.querySelectorAll(".zone").forEach((zone, i) => {
        zone.classList.toggle("swept", !saw && step.red.zone === i);
        zone.querySelector("text").textContent = ZONES[i] + (i === 1 && !saw && plan === WIDE ? ` · ${access}` : "");
      });
      const gate = map.querySelector(".gate"), ot = map.querySelector(".ot"), move = map.querySelector(".move"), target = step.red.host;
      gate.classList.toggle("open", step.open);
      gate.querySelector(".sign").textContent = step.open ? (plan === WIDE ? "›" : "⌄") : "×";
      gate.querySelector(".words").textContent = plan === WIDE ? "" : access;
      ot.classList.toggle("stop", !step.ot);
      const service = ["OT service", step.ot ? "runs" : "stopped"];
      ot.querySelectorAll("text").forEach((text, i) => { text.textContent = plan === WIDE ? (i ? "" : service.join(" ")) : service[i]; });
      const moves = target >= 0 && target !== FOOTHOLD;
      move.setAttribute("class", `move${moves ? "" : " none"}${step.red.ok ? "" : " fail"}`);
      if (moves) move.setAttribute("d", rounded(route(plan, target)));
      if (step.red.ok) move.setAttribute("pathLength", 1); else move.removeAttribute("pathLength");
      move.getBoundingClientRect(); // restarts the arrow
      move.classList.toggle("go", step.red.ok);
      map.querySelectorAll(".host").forEach((host, h) => {
        const held = saw ? step.status[h] : step.held[h], active = step.activity[h], decoys = step.decoys[h], shown = decoys.slice(0, plan.most);
        host.setAttribute("class", `host a-${LEVELS[held]}${step.blue.host === h ? " blue" : ""}${saw && active ? " alarm" : ""}${!saw && differs(step, h) ? " differing" : ""}`);
        host.querySelector(".badge").replaceChildren(...badge(held, saw));
        host.querySelector(".role").textContent = decoys.length ? "" : ROLES[h] || "";
        host.querySelector(".decoys").replaceChildren(...shown.map((name, i) => decoy(name, 16 + 23 * i, 29)),
          ...(decoys.length > shown.length ? [svg("text", { x: 18 + 23 * shown.length, y: 41 }, `+${decoys.length - shown.length}`)] : []));
        const tags = [["blue", step.blue.host === h && step.blue.tag], ...(saw ? [["red", ACTIVITY[active]]] : [["green", step.green.host === h && step.green.tag], ["red", target === h && step.red.tag]])].filter(([, word]) => word);
        const total = tags.reduce((sum, [, word]) => sum + width(word, 600) + 12, -2), [w, high] = plan.card, left = plan.at[h][0];
        let x = Math.max((h > FOOTHOLD ? plan.at[FOOTHOLD][0] + w + 10 : 2) - left, Math.min(total > w - 12 ? (w - total) / 2 : 6, plan.width - 2 - total - left));
        host.querySelector(".tags").replaceChildren(...tags.map(([who, word]) => {
          const wide = width(word, 600) + 10, tag = svg("g", { class: who, transform: `translate(${x} ${high - 7})` }, svg("rect", { width: wide, height: 17, rx: 4 }), svg("text", { x: wide / 2, y: 12.5 }, word));
          x += wide + 2;
          return tag;
        }));
        if (held > 1) words.push(`${data.hosts[h]}: ${RECORD[held]}`);
      });
      map.setAttribute("aria-label", `Network at step ${now}, ${saw ? "as blue saw it" : "as it was"}. ${words.join("; ") || "No access."}`);
    }

    function drawTable(step) {
      const count = ORDER.filter(h => differs(step, h)).length;
      $(".count").textContent = count ? `${count} host${count > 1 ? "s differ" : " differs"}` : "no difference";
      $$(".whose button").forEach((button, i) => button.setAttribute("aria-pressed", i === whose));
      $("tbody").replaceChildren(...ORDER.map(h => {
        const cell = (words, which, saw) => make("span", { class: "state" }, ...(which ? [level(which, saw)] : []), words);
        const status = step.status[h], active = ACTIVITY[step.activity[h]], held = step.held[h], apart = differs(step, h);
        return make("tr", { class: apart ? "diff" : "" }, make("th", { scope: "row" }, data.hosts[h]),
          make("td", {}, ...(status || !active ? [cell(RECORD[status], status, true), " "] : []), make("b", {}, active)), make("td", { class: "mark" }, apart ? "≠" : ""), make("td", {}, cell(TRUTH[held], held, false)));
      }));
    }

    function drawChart() {
      const box = $(".chart"), wide = Math.max(280, box.clientWidth), top = 18, bars = 52, gap = 26, sums = 64, below = top + bars + gap, high = below + sums + 34;
      const lowest = Math.min(-1, ...games.flatMap(game => game.steps.map(step => step.reward))), least = Math.min(-1, ...games.map(game => game.steps[last].sum));
      const label = i => `${two ? `${names[i]} ` : ""}${number(games[i].steps[last].sum)}`;
      const left = Math.max(...[lowest, least].flatMap(low => ticks(low, 0, 2)).map(value => width(short(value)))) + 12, right = Math.max(...games.map((_, i) => width(label(i), 600))) + 14;
      const X = t => left + t / last * (wide - left - right), Y1 = value => top + value / lowest * bars, Y2 = value => below + value / least * sums;
      const chart = svg("svg", { viewBox: `0 0 ${wide} ${high}`, height: high, role: "img", "aria-label": `Reward of each step and its sum, ending at ${games.map((_, i) => label(i)).join(" and ")}` });
      const text = (x, y, words, name) => chart.append(svg("text", { x, y, class: name }, words));
      const line = (name, x1, x2, y1, y2) => { const drawn = svg("line", { class: name, x1, x2, y1, y2 }); chart.append(drawn); return drawn; };
      text(left, 12, "each step", "strong");
      text(left, below - 6, "sum", "strong");
      [[lowest, Y1], [least, Y2]].forEach(([low, Y]) => ticks(low, 0, 2).forEach(value => {
        line(value ? "" : "zero", left, wide - right, Y(value), Y(value));
        text(left - 7, Y(value) + 4, short(value), "end");
      }));
      const thick = (wide - left - right) / last * 0.62 / games.length;
      games.forEach(({ steps }, i) => {
        steps.forEach((step, t) => { if (step.reward) chart.append(svg("rect", { class: `bar${i}`, x: X(t) - thick * games.length / 2 + i * thick, width: thick, y: top, height: Y1(step.reward) - top })); });
        chart.append(svg("path", { class: `sum${i}`, d: `M${steps.map((step, t) => `${X(t)} ${Y2(step.sum)}`).join("L")}` }));
      });
      const ends = games.map(({ steps }, i) => ({ i, y: Y2(steps[last].sum) + 4 })).sort((a, b) => a.y - b.y);
      if (two && ends[1].y - ends[0].y < 15) ends[0].y = ends[1].y - 15;
      ends.forEach(({ i, y }) => text(wide - right + 8, y, label(i), `strong end${i}`));
      ticks(0, last, wide < 420 ? 3 : 6).forEach(t => text(X(t), high - 18, String(t), "mid"));
      text(wide - right, high - 3, "step", "end");
      if (apart > 0) { line("apart", X(apart), X(apart), top, below + sums); text(X(apart) + 5, high - 3, "first difference", ""); }
      cursor = line("cursor", 0, 0, top - 4, below + sums);
      chart.addEventListener("click", event => { const at = chart.getBoundingClientRect(); go(Math.round(((event.clientX - at.left) * wide / at.width - left) / (wide - left - right) * last)); });
      Object.assign(slider.style, narrow.matches ? { marginLeft: "", width: "" } : { marginLeft: `${left - 8}px`, width: `${wide - left - right + 16}px` });
      place = X;
      box.replaceChildren(chart);
    }

    function drawLegend() {
      const shown = (wide, name, ...drawn) => [sign(wide, ...drawn), name], ring = who => svg("g", { class: `host ${who}` }, svg("rect", { class: "ring", x: 2, y: 2, width: 16, height: 16, rx: 4 }));
      const path = (name, words) => shown(28, words, svg("path", { class: name, d: "M1 10H27" }));
      const both = [shown(24, "decoy", decoy("Tomcat", 1.5, 2)), shown(20, "blue acts here", ring("blue"))];
      const marks = show === "saw"
        ? [[level(1, true), "blue’s record: unknown"], [level(2), "user"], [level(3), "privileged"], ...both, shown(20, "activity seen in this step", ring("alarm"))]
        : [[level(1), "ports known to red"], [level(2), "user session"], [level(3), "privileged session"], ...both,
          shown(20, "blue’s record differs", svg("g", { class: "host differing" }, svg("g", { class: "differs", transform: "translate(10 10)" }, svg("circle", { r: 8 }), svg("text", { y: 4 }, "≠")))),
          path("move", "red’s action"), path("move fail", "failed"), path("wire", "escalation here reveals that address")];
      $(".legend").replaceChildren(...marks.map(([mark, meaning]) => make("li", {}, mark, meaning)));
    }

    function go(t) {
      now = Math.max(0, Math.min(last, Number.isFinite(t) ? t : 0));
      const steps = games.map(game => game.steps[now]), plan = narrow.matches || two ? TALL : WIDE;
      slider.value = now;
      slider.setAttribute("aria-valuetext", `step ${now}: ${AGENTS.map(who => `${who} ${steps[0][who].words}`).join(" ")}`);
      output.textContent = `step ${now} of ${last}`;
      boxes.forEach((box, i) => {
        if (box.plan !== plan) layout(box.plan = plan, box);
        drawMap(box, plan, steps[i]);
        const rewards = `reward ${number(steps[i].reward)}, sum ${number(steps[i].sum)}`, acts = two ? box.box : $(".acts");
        if (two) box.box.querySelector("h3 span").textContent = rewards; else $(".reward").textContent = rewards;
        acts.querySelector(".actions")?.remove();
        acts.append(actionsOf(steps[i]));
      });
      drawTable(steps[whose]);
      cursor.setAttribute("x1", place(now));
      cursor.setAttribute("x2", place(now));
      if (now === last) stop();
      onChange(now, show);
    }
    const access = step => step.held.map(held => Math.max(held, 1)).join();
    const changes = games[0].steps.map((step, t) => (t && access(step) !== access(games[0].steps[t - 1]) ? t : 0)).filter(Boolean);
    const jump = forward => { const t = forward ? changes.find(c => c > now) : changes.findLast(c => c < now); if (t !== undefined) go(t); };
    const face = () => { const button = $("[data-go=play]"), name = timer ? "pause" : "play"; button.innerHTML = icon(name); button.setAttribute("aria-label", timer ? "Pause" : "Play"); };
    function stop() { clearInterval(timer); timer = 0; face(); }
    function play() {
      if (timer) { stop(); return; }
      if (now === last) go(0);
      timer = setInterval(() => go(now + 1), 700);
      face();
    }
    function look(what) {
      show = what === "saw" ? "saw" : "true";
      $$("[data-show]").forEach(button => button.setAttribute("aria-pressed", button.dataset.show === show));
      drawLegend();
      go(now);
    }
    function press(event) {
      if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest?.("select, textarea, input:not([type=range])")) return;
      const arrow = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (arrow && event.shiftKey) jump(arrow > 0);
      else if (arrow) go(now + arrow);
      else if (event.key === "Home") go(0);
      else if (event.key === "End") go(last);
      else if (event.key === " " && !event.target.closest?.("button, a, summary")) play();
      else return;
      event.preventDefault();
    }
    const commands = { first: () => go(0), back: () => go(now - 1), play, next: () => go(now + 1), end: () => go(last), apart: () => go(apart) };
    $$("[data-go]").forEach(button => button.addEventListener("click", () => commands[button.dataset.go]()));
    $$("[data-show]").forEach(button => button.addEventListener("click", () => look(button.dataset.show)));
    if (two) {
      $(".whose").append(...names.map((name, i) => { const button = make("button", { type: "button" }, name); button.addEventListener("click", () => { whose = i; go(now); }); return button; }));
      $("[data-go=apart]").textContent = apart > 0 ? `First difference: ${apart}` : "Both take the same actions";
      Object.assign($("[data-go=apart]"), { hidden: false, disabled: apart < 1 });
    }
    slider.addEventListener("input", () => go(Number(slider.value)));
    keys.addEventListener("keydown", press, { signal });
    addEventListener("resize", () => { drawChart(); go(now); }, { signal });
    drawChart();
    now = start;
    look(show);
    return { go, look, stop, remove: () => { stop(); ended.abort(); root.replaceChildren(); } };
  };
})();

/* the page of `cage2 replay`: the address keeps what is shown */
if (document.getElementById("replay-data")) {
  const start = new URLSearchParams(location.hash.slice(1)), data = JSON.parse(document.getElementById("replay-data").textContent);
  cage2Replay(document.getElementById("replay"), data, document.getElementById("replay-map").innerHTML, {
    step: Number(start.get("step")), show: start.get("show"),
    onChange: (step, show) => history.replaceState(null, "", `#step=${step}${show === "saw" ? "&show=saw" : ""}`),
  });
}
