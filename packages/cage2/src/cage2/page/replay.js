"use strict";
/* A replay of one or two games of CAGE 2, from the JSON in #data: map, controls, actions in words, what blue saw. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("replay"), games = data.games, last = games[0].steps.length - 1, two = games.length > 1;
  const NS = "http://www.w3.org/2000/svg", narrow = matchMedia("(max-width: 48rem)");
  const LEVELS = ["none", "seen", "user", "priv"], ZONES = ["Enterprise", "Operational", "User"], ORDER = [8, 9, 10, 11, 12, 1, 2, 3, 0, 7, 4, 5, 6];
  const WIRES = [[9, 2], [10, 2], [11, 1], [12, 1], [3, 7]], FOOTHOLD = 8, SERVER = 7;
  /* upper left corners of the cards in the order of the hosts; zones in the order of ZONES */
  const WIDE = { width: 860, height: 452, card: [112, 58], gate: [581, 227], zones: [[302, 8, 270, 436], [590, 8, 262, 436], [8, 8, 276, 436]],
    at: [[450, 348], [312, 302], [312, 94], [450, 198], [730, 72], [730, 198], [730, 324], [600, 198], [20, 198], [160, 48], [160, 140], [160, 256], [160, 348]] };
  const TALL = { width: 360, height: 640, card: [104, 56], gate: [180, 420], zones: [[4, 216, 352, 196], [4, 428, 352, 200], [4, 4, 352, 196]],
    at: [[12, 326], [128, 246], [244, 246], [128, 326], [12, 544], [128, 544], [244, 544], [128, 456], [12, 84], [244, 34], [244, 116], [128, 34], [128, 116]] };
  /* red's way from User0 around the cards */
  const route = (map, h) => {
    const [x, y] = map.at[h];
    if (map === WIDE) {
      const from = [132, 227], to = [x - 3, y + 29];
      if (h > FOOTHOLD) return [from, [146, 227], [146, to[1]], to];
      if (h === 3) return [from, to];
      if (h === 1 || h === 2) return [from, [298, 227], [298, to[1]], to];
      if (h === 0) return [from, [437, 227], [437, to[1]], to];
      const lane = h === SERVER ? 586 : 721, end = h === SERVER ? [to[0], to[1] + 14] : to;
      return [from, [437, 227], [437, 280], [lane, 280], [lane, end[1]], end];
    }
    const from = [104, 140], middle = x + 52, to = [middle, y - 3];
    if (h > FOOTHOLD) return [[116, 112], [122, 112], [122, y + 28], [x - 3, y + 28]];
    if (h === 0) return [from, [104, y - 3]];
    if (h === 1 || h === 2) return [from, [104, 232], [middle, 232], to];
    if (h === 3) return [from, [104, 314], [middle, 314], to];
    if (h === SERVER) return [from, [104, 314], [122, 314], [122, 443], [middle - 24, 443], [middle - 24, y - 3]];
    return [from, [104, 314], [122, 314], [122, 530], [middle, 530], to];
  };
  const make = (tag, attributes = {}, text = "") => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = text;
    return node;
  };
  const svg = (tag, attributes = {}, text = "") => {
    const node = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = text;
    return node;
  };
  const number = value => (Math.abs(value) < 0.05 ? "0.0" : value.toFixed(1).replace("-", "−"));
  const record = (step, h) => step.status[h];
  /* red's access is compared with blue's record: none, user or privileged; ports that red knows are no access */
  const differs = (step, h) => h !== FOOTHOLD && (step.held[h] >= 2 ? step.held[h] : 0) !== record(step, h);

  root.innerHTML = `<h1>CAGE 2 replay</h1><p class="muted" id="about"></p>
<div class="grid"><div class="column">
<section class="panel"><header><h2>Network</h2><div class="switch" role="group" aria-label="The map shows"><button type="button" data-show="true" aria-pressed="true">what was true</button><button type="button" data-show="saw" aria-pressed="false">what blue saw</button></div></header><div class="maps"></div><ul class="legend"></ul></section>
<section class="panel dock"><div class="controls"><button type="button" data-go="first" aria-label="First step">«</button><button type="button" data-go="back" aria-label="Previous step">‹</button><button type="button" data-go="play">Play</button><button type="button" data-go="next" aria-label="Next step">›</button><button type="button" data-go="end" aria-label="Last step">»</button><output></output><button type="button" data-go="apart" hidden>First difference</button><span class="hint"><kbd>←</kbd> <kbd>→</kbd> step · <kbd>shift</kbd> <kbd>←</kbd> <kbd>→</kbd> next change of access · <kbd>space</kbd> play</span></div><input type="range" min="0" max="${last}" value="0" aria-label="Step of the game"></section>
<section class="panel"><header><h2>Reward</h2><p>click to go to a step</p></header><div class="chart"></div></section>
</div><div class="column">
<section class="panel"><header><h2>Actions in this step</h2><p id="reward"></p></header><div id="actions"></div></section>
<section class="panel"><header><h2>What blue saw, what was true</h2><p id="count"></p></header><table><thead><tr><th scope="col">Host</th><th scope="col">Blue saw</th><th scope="col"></th><th scope="col">True</th></tr></thead><tbody></tbody></table><p class="note">Bold: activity in this step. User0 is red’s foothold and is not counted. ≠ marks a host whose record is not what red holds.</p></section>
</div></div>`;
  const $ = selector => root.querySelector(selector);
  root.classList.toggle("two", two);
  $("#about").textContent = `${games.map(game => game.agent).join(" and ")} against ${data.red} · rules ${data.rules} · table ${data.table} · seed ${data.seed} · ${data.green === "Sleep" ? "green sleeps" : "green user active"} · ${last} steps · sum ${games.map(game => number(game.steps[last].sum)).join(" and ")}`;
  const slider = $("input"), output = $("output");
  const apart = two ? games[0].steps.findIndex((step, t) => t && step.action !== games[1].steps[t].action) : -1;
  let now = 0, show = "true", timer = 0;

  const maps = games.map((game, index) => {
    const box = make("div");
    if (two) box.append(make("h2", {}, game.agent));
    box.append(document.getElementById("map").content.cloneNode(true));
    $(".maps").append(box);
    const map = box.querySelector("svg"), template = map.querySelector(".host");
    map.querySelector("marker").id = `head${index}`;
    map.querySelector(".move").setAttribute("marker-end", `url(#head${index})`);
    data.hosts.forEach(name => {
      const host = template.cloneNode(true);
      host.querySelector(".name").textContent = name;
      map.querySelector(".hosts").append(host);
    });
    template.remove();
    return map;
  });

  /* positions: once, and when the window becomes narrow or wide */
  function layout() {
    const plan = narrow.matches || two ? TALL : WIDE, [width, height] = plan.card;
    maps.forEach(map => {
      map.setAttribute("viewBox", `0 0 ${plan.width} ${plan.height}`);
      map.querySelectorAll(".zone").forEach((zone, i) => {
        const [x, y, w, h] = plan.zones[i], box = zone.querySelector("rect"), text = zone.querySelector("text");
        Object.entries({ x, y, width: w, height: h }).forEach(([name, value]) => box.setAttribute(name, value));
        text.setAttribute("x", x + 12); text.setAttribute("y", y + 20);
      });
      map.querySelectorAll(".wire").forEach((wire, i) => {
        const [[ax, ay], [bx, by]] = WIRES[i].map(h => plan.at[h]), y1 = ay + height / 2, y2 = by + height / 2, x1 = ax + width;
        wire.setAttribute("d", plan === WIDE ? `M${x1} ${y1}C${x1 + 26} ${y1} ${bx - 26} ${y2} ${bx} ${y2}` : `M${ax + width / 2} ${y1}L${bx + width / 2} ${y2}`);
      });
      map.querySelector(".gate").setAttribute("transform", `translate(${plan.gate})`);
      const ot = map.querySelector(".ot"), [sx, sy] = plan.at[SERVER];
      ot.setAttribute("x", plan === WIDE ? sx + 2 : sx + width + 8); ot.setAttribute("y", plan === WIDE ? sy - 9 : sy + 32);
      map.querySelectorAll(".host").forEach((host, h) => {
        host.setAttribute("transform", `translate(${plan.at[h]})`);
        const size = (selector, w, tall) => { const box = host.querySelector(selector); box.setAttribute("width", w); box.setAttribute("height", tall); };
        size(".card", width, height); size(".ring", width + 8, height + 8); host.querySelector(".strip").setAttribute("height", height);
        const badge = host.querySelector(".round"), square = host.querySelector(".square"), letter = host.querySelector(".letter");
        badge.setAttribute("cx", width - 3); badge.setAttribute("cy", 1); square.setAttribute("x", width - 12); square.setAttribute("y", -8); letter.setAttribute("x", width - 3); letter.setAttribute("y", 5);
        host.querySelector("circle.differs").setAttribute("cx", width + 1); host.querySelector("circle.differs").setAttribute("cy", 27);
        host.querySelector("text.differs").setAttribute("x", width + 1); host.querySelector("text.differs").setAttribute("y", 31);
      });
      map.plan = plan;
    });
  }

  /* a step: classes and texts */
  function drawMap(map, step, t) {
    const saw = show === "saw", plan = map.plan, most = plan === WIDE ? 4 : 3;
    map.querySelectorAll(".zone").forEach((zone, i) => {
      zone.classList.toggle("swept", !saw && step.red.zone === i);
      zone.querySelector("text").textContent = ZONES[i] + (i === 1 && !saw ? (step.open ? " · open to red" : " · closed to red") : "");
    });
    const gate = map.querySelector(".gate"), ot = map.querySelector(".ot"), move = map.querySelector(".move");
    gate.style.display = ot.style.display = saw ? "none" : "";
    gate.classList.toggle("open", step.open);
    gate.querySelector("text").textContent = step.open ? (plan === WIDE ? "›" : "⌄") : "×";
    ot.textContent = step.ot ? "OT service runs" : "OT service stopped";
    ot.classList.toggle("stop", !step.ot);
    const moves = !saw && step.red.host >= 0 && step.red.host !== FOOTHOLD;
    move.style.display = moves ? "" : "none";
    move.classList.toggle("fail", !step.red.ok);
    if (moves) move.setAttribute("d", "M" + route(plan, step.red.host).map(point => point.join(" ")).join("L"));
    const words = [];
    map.querySelectorAll(".host").forEach((host, h) => {
      const level = saw ? record(step, h) : step.held[h], active = step.activity[h];
      host.setAttribute("class", `host a-${LEVELS[level]}`);
      host.classList.toggle("blue", step.blue.host === h);
      host.classList.toggle("alarm", saw && active > 0);
      host.classList.toggle("differing", !saw && differs(step, h));
      host.querySelector(".letter").textContent = ["", saw ? "?" : "s", "U", "P"][level];
      const decoys = step.decoys[h].map(name => name.slice(0, 2));
      host.querySelector(".decoys").textContent = decoys.slice(0, most).join(" ") + (decoys.length > most ? ` +${decoys.length - most}` : "");
      const tags = [["blue", step.blue.host === h && step.blue.tag]];
      if (saw) tags.push(["red", ["", "scan", "exploit"][active]]);
      else tags.push(["green", step.green.host === h && step.green.tag], ["red", step.red.host === h && step.red.tag]);
      const box = host.querySelector(".tags");
      box.replaceChildren();
      const shown = tags.filter(([, word]) => word), total = shown.reduce((sum, [, word]) => sum + 7 * word.length + 12, -2);
      let x = Math.min(6, plan.width - 6 - total - plan.at[h][0]);
      shown.forEach(([who, word]) => {
        const width = 7 * word.length + 10;
        box.append(svg("rect", { class: who, x, y: plan.card[1] - 7, width, height: 17, rx: 4 }), svg("text", { x: x + width / 2, y: plan.card[1] + 5.5 }, word));
        x += width + 2;
      });
      if (level > 1) words.push(`${data.hosts[h]}: ${["", "", "user", "privileged"][level]}`);
    });
    map.setAttribute("aria-label", `Network at step ${t}. ${words.join("; ") || "Red holds nothing."}`);
  }

  const actionsOf = step => {
    const box = make("div", { class: "actions" });
    ["blue", "green", "red"].forEach(who => {
      const one = make("div", { class: who });
      one.append(make("h3", {}, who[0].toUpperCase() + who.slice(1)), make("p", {}, step[who].words), make("small", {}, step[who].note));
      box.append(one);
    });
    return box;
  };

  function drawTable(step) {
    const count = ORDER.filter(h => differs(step, h)).length;
    $("#count").textContent = count ? `${count} host${count > 1 ? "s differ" : " differs"}` : "no difference";
    $("tbody").replaceChildren(...ORDER.map(h => {
      const row = make("tr", { class: differs(step, h) ? "diff" : "" }), seen = make("td");
      seen.append(["–", "unknown", "user", "privileged"][record(step, h)]);
      if (step.activity[h]) seen.append(" ", make("b", {}, ["", "scan", "exploit"][step.activity[h]]));
      row.append(make("th", { scope: "row" }, data.hosts[h]), seen, make("td", {}, differs(step, h) ? "≠" : ""), make("td", {}, ["–", "scanned", "user", "privileged"][step.held[h]]));
      return row;
    }));
  }

  let cursor = null, place = t => t;
  function drawChart() {
    const box = $(".chart"), width = Math.max(280, box.clientWidth), left = 52, right = 58, top = 18, bars = 52, gap = 26, sums = 64;
    const lowest = Math.min(-1, ...games.flatMap(game => game.steps.map(step => step.reward))), least = Math.min(-1, ...games.map(game => game.steps[last].sum));
    const height = top + bars + gap + sums + 30, below = top + bars + gap, X = t => left + t / last * (width - left - right);
    const Y1 = value => top + value / lowest * bars, Y2 = value => below + value / least * sums;
    const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `Reward of each step and its sum, ending at ${number(games[0].steps[last].sum)}` });
    const text = (x, y, words, name) => chart.append(svg("text", { x, y, class: name }, words));
    text(left, 12, "each step", "strong"); text(left, below - 6, "sum", "strong");
    [[lowest, Y1], [least, Y2]].forEach(([low, Y]) => [0, low].forEach(value => {
      chart.append(svg("line", { class: value ? "" : "zero", x1: left, x2: width - right, y1: Y(value), y2: Y(value) }));
      text(left - 7, Y(value) + 4, number(value), "end");
    }));
    games.forEach((game, i) => {
      const thick = (width - left - right) / last * 0.62 / games.length;
      game.steps.forEach((step, t) => { if (step.reward) chart.append(svg("rect", { class: `bar${i}`, x: X(t) - thick * games.length / 2 + i * thick, width: thick, y: top, height: Y1(step.reward) - top })); });
      chart.append(svg("path", { class: `sum${i}`, d: "M" + game.steps.map((step, t) => `${X(t)} ${Y2(step.sum)}`).join("L") }));
    });
    const ends = games.map((game, i) => ({ y: Y2(game.steps[last].sum) + 4, words: number(game.steps[last].sum), i })).sort((a, b) => a.y - b.y);
    if (two && ends[1].y - ends[0].y < 15) ends[0].y = ends[1].y - 15;
    ends.forEach(end => text(width - right + 8, end.y, end.words, "strong"));
    for (let t = 0; t <= last; t += Math.max(1, Math.round(last / 5))) text(X(t), height - 12, String(t), "mid");
    text(width - right, height, "step", "end");
    if (apart > 0) chart.append(svg("line", { class: "apart", x1: X(apart), x2: X(apart), y1: top, y2: below + sums }));
    cursor = svg("line", { class: "cursor", y1: top - 4, y2: below + sums });
    chart.append(cursor);
    chart.addEventListener("click", event => {
      const bounds = chart.getBoundingClientRect();
      go(Math.round(((event.clientX - bounds.left) * width / bounds.width - left) / (width - left - right) * last));
    });
    place = X;
    box.replaceChildren(chart);
  }

  function drawLegend() {
    const marks = show === "saw"
      ? [["?", "blue’s record: unknown"], ["U", "user"], ["P", "privileged"], ["To", "decoy"], ["dashed ring", "activity seen in this step"]]
      : [["s", "ports known to red"], ["U", "user session"], ["P", "privileged session"], ["To", "decoy, the first two letters"], ["≠", "blue’s record differs"], ["dashed arrow", "red’s action failed"], ["thin line", "escalation here reveals that address"]];
    $(".legend").replaceChildren(...marks.map(([mark, meaning]) => { const item = make("li"); item.append(make("b", {}, mark), ` ${meaning}`); return item; }));
  }

  function go(t) {
    now = Math.max(0, Math.min(last, t));
    const step = games[0].steps[now];
    slider.value = now;
    slider.setAttribute("aria-valuetext", `step ${now}: blue ${step.blue.words} green ${step.green.words} red ${step.red.words}`);
    output.textContent = `step ${now} of ${last}`;
    $("#reward").textContent = games.map(game => `${two ? game.agent + ": " : ""}reward ${number(game.steps[now].reward)}, sum ${number(game.steps[now].sum)}`).join(" · ");
    maps.forEach((map, i) => drawMap(map, games[i].steps[now], now));
    $("#actions").replaceChildren(...games.flatMap(game => [...(two ? [make("h2", {}, game.agent)] : []), actionsOf(game.steps[now])]));
    drawTable(step);
    cursor.setAttribute("x1", place(now)); cursor.setAttribute("x2", place(now));
    if (now === last) stop();
    const query = new URLSearchParams(location.hash.slice(1));
    query.set("step", now);
    if (show === "saw") query.set("show", "saw"); else query.delete("show");
    history.replaceState(null, "", `#${query}`);
  }
  const changed = t => games[0].steps[t].held.some((level, h) => Math.max(level, 1) !== Math.max(games[0].steps[t - 1].held[h], 1));
  const changes = games[0].steps.map((_, t) => t).filter(t => t && changed(t));
  const jump = forward => { const t = forward ? changes.find(c => c > now) : changes.findLast(c => c < now); if (t !== undefined) go(t); };
  const face = () => { $("[data-go=play]").textContent = timer ? "Pause" : "Play"; };
  function stop() { clearInterval(timer); timer = 0; face(); }
  function play() {
    if (timer) { stop(); return; }
    if (now === last) go(0);
    timer = setInterval(() => go(now + 1), 700);
    face();
  }
  const commands = { first: () => go(0), back: () => go(now - 1), play, next: () => go(now + 1), end: () => go(last), apart: () => go(apart) };
  root.querySelectorAll("[data-go]").forEach(button => button.addEventListener("click", () => commands[button.dataset.go]()));
  $("[data-go=apart]").hidden = apart < 1;
  root.querySelectorAll("[data-show]").forEach(button => button.addEventListener("click", () => look(button.dataset.show)));
  function look(what) {
    show = what;
    root.querySelectorAll("[data-show]").forEach(button => button.setAttribute("aria-pressed", String(button.dataset.show === what)));
    drawLegend();
    go(now);
  }
  slider.addEventListener("input", () => go(Number(slider.value)));
  document.addEventListener("keydown", event => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const arrow = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (arrow && event.shiftKey) jump(arrow > 0);
    else if (arrow) go(now + arrow);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(last);
    else if (event.key === " " && !event.target.closest("button")) play();
    else return;
    event.preventDefault();
  });
  const redraw = () => { layout(); drawChart(); go(now); };
  addEventListener("resize", redraw);
  layout(); drawChart();
  const start = new URLSearchParams(location.hash.slice(1));
  now = Math.max(0, Math.min(last, Number(start.get("step")) || 0));
  look(start.get("show") === "saw" ? "saw" : "true");
})();
