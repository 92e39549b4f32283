"use strict";
/* Theme, live table and curves of the view Runs, the playback of the view Memory, and requests that change something. */
const root = document.documentElement, $ = (selector, from = document) => from.querySelector(selector);
const THEMES = ["auto", "light", "dark"]; const theme = () => THEMES.find(name => name === localStorage.getItem("theme")) || "auto";
const setTheme = name => { localStorage.setItem("theme", name); if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name; }; setTheme(theme());
const color = name => getComputedStyle(root).getPropertyValue(name).trim();
const axisText = value => {
  const [size, letter] = [[1e9, "G"], [1e6, "M"], [1e4, "k"], [0, ""]].find(([least]) => Math.abs(value) >= least);
  const shown = letter ? Number((value / (letter === "k" ? 1e3 : size)).toPrecision(3)) + letter : Number(value.toPrecision(6)).toLocaleString("en"); return shown.replace(/^-0$/, "0").replace("-", "−");
};
const numberText = value => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–"; const size = Math.abs(value), digits = size >= 99.95 || value % 1 === 0 ? 0 : size >= 9.995 ? 1 : size >= 0.0995 ? 2 : 3;
  return (Number(value.toFixed(digits)) + 0).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace(/^-/, "−");
};
const query = () => new URLSearchParams(location.search); const make = (tag, name = "", text = "") => Object.assign(document.createElement(tag), { className: name, textContent: text });
const lost = words => Object.assign($("#lost"), { hidden: !words, textContent: words });
const INCREMENTS = Array.from({ length: 39 }, (_, i) => [1, 2, 5][i % 3] * 10 ** (Math.floor(i / 3) - 4));
/* ---- Runs: figures */
const plots = [];
function boxOf({ env, metric, note }) {
  const box = make("div", "figure"); box.append(make("h3", "", env), make("p", "readout", note), make("div", "plot")); box.firstChild.append(make("span", "", ` · ${metric}`));
  return box;
}
function drawFigure(figure, box) {
  const plot = $(".plot", box), readout = $(".readout", box);
  const data = [figure.x], series = [{}], bands = [], owners = [null];
  const add = (values, options, owner) => { data.push(values); series.push({ points: { show: false }, spanGaps: true, ...options }); owners.push(owner); };
  figure.series.forEach(one => {
    const stroke = color(`--c${one.color}`);
    one.seeds.forEach((values, i) => add(values, { stroke, width: 1, alpha: 0.42 }, { runs: one.runs[i] }));
    if (one.high) { add(one.high, { width: 0 }, null); add(one.low, { width: 0 }, null); bands.push({ series: [data.length - 2, data.length - 1], fill: stroke + "22" }); }
    add(one.mean, { stroke, width: 2.25 }, { runs: one.runs[0], ...one });
  });
  const pen = make("canvas").getContext("2d"); pen.font = `600 12px ${color("--sans")}`;
  const right = 22 + Math.max(...figure.series.map(one => pen.measureText(one.method).width));
  const axis = (side, grid) => ({
    side, stroke: color("--muted"), font: `12px ${color("--sans")}`, incrs: INCREMENTS, values: (_, ticks) => ticks.map(axisText), ticks: { show: false },
    grid: { show: grid, stroke: color("--line"), width: 1 }, size: side === 2 ? 24 : (_, texts) => 12 + Math.max(0, ...(texts || []).map(text => pen.measureText(text).width)), space: side === 2 ? 70 : 42, gap: 6,
  });
  const u = new uPlot({
    width: plot.clientWidth, height: plot.clientHeight, series, bands, padding: [8, Math.min(right, plot.clientWidth * 0.4), 14, 0], legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: false }, y: { range: (_, low, high) => { const [a, b] = figure.zero ? [Math.min(0, low), Math.max(0, high)] : [low, high]; const room = (b - a || 1) * 0.04; return [a < 0 || !figure.zero ? a - room : a, b > 0 || !figure.zero ? b + room : b]; } } },
    axes: [axis(2, false), axis(3, true)], hooks: { draw: [chart => label(chart, plot, figure)], setCursor: [({ cursor: { idx: i } }) => { readout.textContent = i == null ? figure.note : `${axisText(figure.x[i])}: ${figure.series.map(one => `${one.method} ${numberText(one.mean[i])}`).join(" · ")}`; }] },
  }, data, plot);
  u.over.addEventListener("click", () => {
    const { idx, top } = u.cursor; if (idx == null) return;
    const near = owners.map((owner, i) => [owner && data[i][idx] != null ? Math.abs(u.valToPos(data[i][idx], "y") - top) : Infinity, owner]).sort((a, b) => a[0] - b[0])[0];
    if (near[1]) location.href = `/memory?${new URLSearchParams({ run: near[1].runs, near: Math.round(figure.x[idx]) })}`;
  });
  plot.setAttribute("role", "img"); plot.setAttribute("aria-label", `${figure.env}, ${figure.metric} against ${figure.unit}: ` + figure.series.map(one => `${one.method} ends at ${numberText(one.mean.findLast(value => value !== null))}`).join("; ")); plots.push([u, plot]);
}
/* names of the series at their right ends, 15 pixels apart, and a dot where the mean ends */
function label(u, plot, figure) {
  plot.querySelectorAll(".end-label, .unit").forEach(old => old.remove()); const ratio = devicePixelRatio, left = u.bbox.left / ratio, width = u.bbox.width / ratio, top = u.bbox.top / ratio, pen = u.ctx;
  const ends = figure.series.map(one => {
    const i = one.mean.findLastIndex(value => value !== null), x = u.valToPos(figure.x[i] ?? 0, "x", true), y = u.valToPos(one.mean[i] ?? 0, "y", true);
    pen.save(); pen.fillStyle = pen.strokeStyle = color(`--c${one.color}`); pen.beginPath(); pen.arc(x, y, 3 * ratio, 0, 7); pen.fill();
    pen.setLineDash([1.5 * ratio, 2.5 * ratio]); pen.beginPath(); pen.moveTo(x, y); pen.lineTo(u.bbox.left + u.bbox.width, y); pen.stroke(); pen.restore();
    return { one, y: y / ratio - 8 };
  }).sort((a, b) => a.y - b.y);
  const last = top + u.bbox.height / ratio - 12;
  ends.forEach((end, i) => { if (i) end.y = Math.max(end.y, ends[i - 1].y + 15); }); for (let i = ends.length - 1; i >= 0; i--) ends[i].y = Math.min(ends[i].y, i === ends.length - 1 ? last : ends[i + 1].y - 15);
  ends.forEach(({ one, y }) => {
    const text = make("span", `end-label t${one.color}`, one.method); Object.assign(text.style, { left: `${left + width + 7}px`, top: `${y}px`, maxWidth: `${plot.clientWidth - left - width - 8}px`, overflow: "hidden", textOverflow: "ellipsis" }); plot.append(text);
  });
  const unit = make("span", "unit", figure.unit); plot.append(unit); Object.assign(unit.style, { right: `${plot.clientWidth - left - width}px`, bottom: "-6px" });
}
let shown = "";
async function drawCurves() {
  const answer = await fetch(`/runs/curves?${query()}`).catch(() => ({ ok: false })), text = answer.ok ? await answer.text() : shown;
  if (text === shown) return; /* nothing new, or the server is gone: the live connection reports that */
  shown = text;
  const { figures } = JSON.parse(text), boxes = figures.map(boxOf);
  plots.splice(0).forEach(([u]) => u.destroy()); $("#figures").replaceChildren(...boxes);
  figures.forEach((figure, i) => drawFigure(figure, boxes[i]));
  $("#no-curves").hidden = figures.length > 0; performance.mark("curves");
}
/* ---- Runs: table, selection, live updates */
function runsView() {
  const rows = $("#rows"), view = $("#view"), filter = $("#filter-words"); const chosen = new Set(rows.dataset.chosen.split(",").filter(Boolean));
  let paused = false, pressed = false, drawn = Date.now(), down = 0;
  const address = changes => {
    const now = query(); Object.entries(changes).forEach(([name, value]) => (value === "" ? now.delete(name) : now.set(name, value)));
    history.replaceState(null, "", `?${now}`); rows.setAttribute("hx-get", `/runs/table?${now}`);
    document.querySelectorAll(".seg a").forEach(link => { const url = new URL(link.href); now.forEach((value, name) => { if (name !== "status") url.searchParams.set(name, value); }); link.href = url; });
  };
  const refresh = () => { if (!pressed) htmx.ajax("GET", rows.getAttribute("hx-get"), { target: "#rows" }); };
  view.addEventListener("change", () => { address(Object.fromEntries(new FormData(view))); drawCurves(); });
  const smooth = view.elements.smooth, showSmoothing = () => { $("#smoothing").textContent = Number(smooth.value) ? `${smooth.value} %` : "none"; };
  smooth.addEventListener("input", showSmoothing); showSmoothing();
  filter.addEventListener("input", () => { clearTimeout(down); down = setTimeout(() => { address({ filter: filter.value }); refresh(); }, 150); });
  $("#filter").addEventListener("submit", event => { event.preventDefault(); address({ filter: filter.value }); refresh(); });
  rows.addEventListener("change", ({ target }) => {
    const boxes = target.id === "pick-all" ? [...rows.querySelectorAll(".pick:enabled")] : [target];
    boxes.forEach(box => { box.checked = target.checked; if (target.checked) chosen.add(box.value); else chosen.delete(box.value); });
    address({ runs: [...chosen].join(",") || "none" }); drawCurves();
  });
  [["pointerdown", 0, true], ["pointerup", 50, false]].forEach(([name, wait, is]) => addEventListener(name, () => setTimeout(() => { pressed = is; }, wait)));
  rows.addEventListener("htmx:afterSwap", () => { const table = $("#runs-table"); if (table) $("#counts").textContent = table.dataset.counts; });
  $("#pause").addEventListener("click", ({ target }) => { paused = !paused; target.setAttribute("aria-pressed", paused); target.textContent = paused ? "Resume updates" : "Pause updates"; });
  const events = new EventSource("/runs/events");
  events.addEventListener("runs", event => {
    lost(""); if (paused || !JSON.parse(event.data).changed) return;
    if (!$("#runs-table") && !filter.value && !query().has("status")) location.reload(); refresh();
    if (Date.now() - drawn > 5000 && !$("#figures").matches(":hover")) { drawn = Date.now(); drawCurves(); }
  });
  events.addEventListener("error", () => lost(`Connection lost. This is the state of ${new Date().toLocaleTimeString("en-GB")}; the page tries again every 5 s.`));
  addEventListener("resize", () => plots.forEach(([u, plot]) => u.setSize({ width: plot.clientWidth, height: plot.clientHeight })));
  drawCurves();
}
/* ---- requests that change something */
document.addEventListener("click", async event => {
  const button = event.target.closest("[data-post]");
  if (!button || (button.dataset.ask && !confirm(button.dataset.ask))) return; button.disabled = true;
  const answer = await fetch(button.dataset.post, { method: "POST", headers: { "x-token": $("meta[name=token]").content }, body: new URLSearchParams({ run: button.dataset.run || "" }) });
  const { message } = await answer.json().catch(() => ({ message: "The server refused." })); lost(message); button.disabled = false;
});
document.addEventListener("DOMContentLoaded", () => {
  const button = $("#theme"), name = () => { button.textContent = `Theme: ${theme()}`; };
  button.addEventListener("click", () => { setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % 3]); name(); document.dispatchEvent(new Event("theme")); });
  name(); if ($("#figures")) { document.addEventListener("theme", () => { shown = ""; drawCurves(); }); runsView(); }
});
/* ---- Memory: the playback of a stored episode */
let stopPlayback = () => {};
function playbackView() {
  stopPlayback(); const source = $("#episode-data"); if (!source) return;
  const data = JSON.parse(source.textContent), slider = $("#step"), canvas = $("#strips"), pen = canvas.getContext("2d"), last = data.length;
  const signals = data.film ? null : data.signals, actions = [...data.actions, ...(signals?.names || [])], heat = [...data.heat, ...(signals?.heat || [])], row = 15, top = 22, base = top + row * actions.length + 30, tall = 92;
  const low = Math.min(0, ...data.R, ...data.V), high = Math.max(low + 1e-9, 0, ...data.R, ...data.V);
  let now = Math.min(last, Math.max(1, Number(slider.value))), timer = 0, pixels = null;
  if (data.film) fetch(`/memory/film?${new URLSearchParams({ run: data.run, at: data.at, episode: data.episode })}`).then(answer => answer.arrayBuffer()).then(bytes => { pixels = new Uint8Array(bytes); go(now); performance.mark("film"); });
  const inset = name => parseFloat(getComputedStyle($("#playback")).getPropertyValue(name)) * 16;
  function draw() {
    const width = canvas.clientWidth, height = base + tall + 6, left = inset("--left"), right = inset("--right"), X = t => left + (t - 0.5) / last * (width - left - right), wide = (width - left - right) / last;
    canvas.width = width * devicePixelRatio; canvas.height = height * devicePixelRatio; canvas.style.height = `${height}px`; pen.scale(devicePixelRatio, devicePixelRatio);
    const text = (words, x, y, align, fill, weight = "") => { pen.font = `${weight} 12px ${color("--sans")}`; pen.textAlign = align; pen.fillStyle = color(fill); pen.fillText(words, x, y); };
    text(data.stored ? `action probabilities now${right > 60 ? ", stored action marked" : ""}` : "actions and observations, each from its lowest to its highest", left, 12, "left", "--ink", "600");
    heat.forEach((values, i) => {
      const y = top + i * row;
      text(actions[i].slice(0, 16), left - 7, y + 11, "right", "--muted"); pen.fillStyle = color("--sunken"); pen.fillRect(left, y, width - left - right, row - 2);
      pen.fillStyle = color("--heat"); values.forEach((value, t) => { pen.globalAlpha = 0.85 * value; pen.fillRect(X(t + 0.5), y, Math.max(wide, 0.6), row - 2); }); pen.globalAlpha = 1;
    });
    pen.fillStyle = color("--ink"); (data.stored || []).forEach((i, t) => { if (i >= 0) pen.fillRect(X(t + 0.5), top + i * row + 5.5, Math.max(wide, 1), 2); });
    const Y = value => base + tall - 4 - (value - low) / (high - low) * (tall - 8);
    text("return to come R, critic’s value V", left, base - 8, "left", "--ink", "600");
    [low, high].forEach(value => { text(axisText(Number(value.toPrecision(3))), left - 7, Y(value) + 4, "right", "--muted"); pen.fillStyle = color(value ? "--line" : "--edge"); pen.fillRect(left, Y(value), width - left - right, 1); });
    [["R", "--c1"], ["V", "--c0"]].forEach(([name, stroke]) => { pen.strokeStyle = color(stroke); pen.lineWidth = 2; pen.beginPath(); data[name].forEach((value, t) => pen.lineTo(X(t + 1), Y(value))); pen.stroke(); });
    const ends = [["R, to come", "--t1", Y(data.R.at(-1))], ["V, expected", "--t0", Y(data.V.at(-1))]].sort((a, b) => a[2] - b[2]); const gap = Math.max(0, 15 - (ends[1][2] - ends[0][2])) / 2;
    if (right > 60) ends.forEach(([words, fill, y], i) => text(words, width - right + 6, Math.min(y, base + tall - 16) + 4 + (i ? gap : -gap), "left", fill, "600"));
    pen.fillStyle = color("--ink"); pen.fillRect(X(now) - 0.5, top - 3, 1, base + tall - top);
  }
  function go(t) {
    now = Math.max(1, Math.min(last, t));
    const i = now - 1, action = data.stored ? actions[data.stored[i]] ?? "another" : "–";
    slider.value = now; $("#place").textContent = `step ${now} of ${last}`; slider.setAttribute("aria-valuetext", `step ${now}: ${action}, probability now ${numberText(data.now[i])}`);
    const facts = { "stored action": action, "its probability now": numberText(data.now[i]), "return to come R": numberText(data.R[i]), "expected V": numberText(data.V[i]), "R − V": numberText(data.R[i] - data.V[i]), "weight w in cloning": numberText(data.w?.[i]), reward: numberText(data.rewards[i]) };
    $("#numbers").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
    if (data.stored) $("#probabilities").replaceChildren(...data.actions.flatMap((name, a) => { const meter = Object.assign(make("meter"), { value: heat[a][i] }), is = data.stored[i] === a; meter.setAttribute("aria-label", name); return [make("span", is ? "is" : "", (is ? "▸ " : "") + name), meter, make("span", is ? "is" : "", numberText(heat[a][i]))]; }));
    if (pixels) {
      const { width, height, channels } = data.film, size = width * height, image = new ImageData(width, height), start = Math.min(i, pixels.length / size / channels - 1) * size * channels;
      for (let p = 0; p < size; p++) for (let c = 0; c < 4; c++) image.data[4 * p + c] = c === 3 ? 255 : pixels[start + p * channels + (channels === 3 ? c : 0)];
      $("#film").getContext("2d").putImageData(image, 0, 0);
    }
    draw(); if (now === last && timer) play();
    const address = query(); address.set("step", now); history.replaceState(history.state, "", `?${address}`);
  }
  const jump = way => { let t = now + way; while (t > 1 && t < last && data.stored?.[t - 1] === data.stored?.[t - way - 1]) t += way; go(t); };
  const play = () => { if (timer) { clearInterval(timer); timer = 0; } else { if (now === last) now = 1; timer = setInterval(() => go(now + 1), Math.min(400, Math.max(33, 12000 / last))); } };
  const commands = { first: () => go(1), back: () => go(now - 1), play, next: () => go(now + 1), last: () => go(last) }; const press = event => { const button = event.target.closest("[data-go]"); if (button) commands[button.dataset.go](); };
  const keys = event => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select, input:not([type=range])")) return;
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (way) (event.shiftKey ? jump : step => go(now + step))(way);
    else if (event.key === "Home") go(1); else if (event.key === "End") go(last);
    else if (event.key === " " && !event.target.closest("button")) play(); else return;
    event.preventDefault();
  };
  slider.addEventListener("input", () => go(Number(slider.value)));
  const listeners = [["click", press], ["keydown", keys], ["theme", draw]]; listeners.forEach(([name, listener]) => document.addEventListener(name, listener)); addEventListener("resize", draw);
  stopPlayback = () => { clearInterval(timer); listeners.forEach(([name, listener]) => document.removeEventListener(name, listener)); removeEventListener("resize", draw); stopPlayback = () => {}; };
  go(now);
}
document.addEventListener("htmx:afterSettle", event => { if (event.target.id === "content") playbackView(); });
/* ---- CAGE 2: the replay of the package cage2; the address keeps what is shown */
document.addEventListener("DOMContentLoaded", () => {
  playbackView(); const source = $("#cage2-data"), address = query();
  if (source) cage2Replay($("#replay"), JSON.parse(source.textContent), $("#replay-map").innerHTML, {
    step: Number(address.get("step")), show: $("#replay").classList.contains("blind") ? "saw" : address.get("show"),
    onChange: (step, show) => { address.set("step", step); if (show === "saw") address.set("show", "saw"); else address.delete("show"); history.replaceState(null, "", `?${address}`); },
  });
  $("[data-submits]")?.addEventListener("change", ({ currentTarget: form }) => { const now = new URLSearchParams([...new FormData(form)].filter(([name, value]) => name !== "token" && value)); location.search = now; });
});
