"use strict";
// A small line chart on SVG: zoom, pan, read-out, log axis, gaps, onsets and a highlighted stretch.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 22, right: 14, bottom: 36, left: 58 };
const SHOWN_AT_FIRST = 8;

function make(name, attributes, parent, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function say(value) {
  if (value === null) return "NaN/Inf";
  const size = Math.abs(value);
  if (value === Math.round(value) && size < 1e6) return String(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(2).replace("e+", "e") : String(+value.toPrecision(4));
}

function niceTicks(low, high, wanted) {
  const raw = (high - low) / wanted;
  if (!(raw > 0) || !isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || raw;
  const ticks = [];
  for (let i = Math.ceil(low / step); i <= Math.floor(high / step) && ticks.length < 50; i++) ticks.push(+(i * step).toPrecision(12));
  return ticks;
}

function logTicks(low, high) {
  const from = Math.floor(low), to = Math.ceil(high);
  const each = Math.max(1, Math.ceil((to - from) / 7));
  const steps = to - from <= 4 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let p = from; p <= to; p += each) for (const m of steps) ticks.push(m * 10 ** p);
  const inside = ticks.filter((t) => Math.log10(t) >= low - 1e-9 && Math.log10(t) <= high + 1e-9);
  return inside.length > 1 ? inside : niceTicks(10 ** low, 10 ** high, 4).filter((t) => t > 0);
}

// the first position whose x is at least this one
function lowerBound(xs, x) {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}

class Chart {
  constructor(data, parts) {
    this.data = data;
    this.parts = parts;
    this.group = 0;
    this.view = null;
    this.isLog = false;
    this.hidden = new Set();
    this.picked = null;
    this.drag = null;
    this.svg = make("svg", { role: "img" }, parts.plot);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    parts.plot.append(this.tip);
    data.groups.forEach((group, i) => parts.group.append(new Option(group.title, i)));
    this.listen();
    this.choose(0);
  }

  get members() { return this.data.groups[this.group].series; }
  get visible() { return this.members.filter((i) => !this.hidden.has(i)); }

  choose(index) {
    this.group = index;
    this.parts.group.value = index;
    this.view = null;
    this.picked = null;
    this.isLog = this.data.groups[index].log;
    // of many layers, a few at even distances
    const members = this.members, every = Math.ceil(members.length / SHOWN_AT_FIRST);
    this.hidden = new Set(members.filter((_, k) => k % every !== 0));
    this.makeLegend();
    this.draw();
  }

  makeLegend() {
    this.parts.legend.replaceChildren(...this.members.map((i, k) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(!this.hidden.has(i)));
      const swatch = make("svg", { viewBox: "0 0 18 8", "aria-hidden": "true", class: `s${k % 8}` }, button);
      make("line", { x1: 0, x2: 18, y1: 4, y2: 4 }, swatch);
      button.append(this.data.series[i].name);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(i)) this.hidden.add(i);
        button.setAttribute("aria-pressed", String(!this.hidden.has(i)));
        this.draw();
      });
      return button;
    }));
  }

  showSeries(index) {
    const group = this.data.groups.findIndex((g) => g.series.includes(index));
    this.choose(group);
    if (this.hidden.delete(index)) { this.makeLegend(); this.draw(); }
  }

  pick(index, from, to, anchor) {
    this.showSeries(index);
    this.picked = { from: Math.min(from, to), to: Math.max(from, to), anchor };
    const [low, high] = this.extent();
    const around = Math.max((this.picked.to - this.picked.from) * 0.6, (high - low) * 0.05);
    this.view = [Math.max(low, this.picked.from - around), Math.min(high, this.picked.to + around)];
    if (!(this.view[1] > this.view[0])) this.view = null;
    this.draw();
  }

  extent() {
    let low = Infinity, high = -Infinity;
    for (const i of this.members) {
      const xs = this.data.series[i].x;
      low = Math.min(low, xs[0]);
      high = Math.max(high, xs[xs.length - 1]);
    }
    return [low, high];
  }

  reset() { this.view = null; this.picked = null; this.draw(); }

  zoom(factor, at) {
    const [low, high] = this.extent();
    const [from, to] = this.view || [low, high];
    const centre = at === undefined ? (from + to) / 2 : at;
    const next = [Math.max(low, centre - (centre - from) * factor), Math.min(high, centre + (to - centre) * factor)];
    if (next[1] - next[0] < (high - low) * 1e-6) return;
    this.view = next[0] <= low && next[1] >= high ? null : next;
    this.draw();
  }

  pan(distance) {
    if (!this.view) return;
    const [low, high] = this.extent();
    const moved = Math.min(Math.max(distance, low - this.view[0]), high - this.view[1]);
    this.view = [this.view[0] + moved, this.view[1] + moved];
    this.draw();
  }

  // the points in view, thinned to what a column of pixels can show; null is a gap
  pointsOf(index, from, to) {
    const { x, y } = this.data.series[index];
    const start = Math.max(0, lowerBound(x, from) - 1);
    let stop = lowerBound(x, to);
    while (stop < x.length && x[stop] <= to) stop++;
    stop = Math.min(x.length, stop + 1);
    const room = Math.max(this.width, 50);
    if (stop - start <= room * 4) return Array.from({ length: stop - start }, (_, k) => [x[start + k], y[start + k]]);
    const points = [];
    const size = (stop - start) / room;
    for (let b = 0; b < room; b++) {
      const s = start + Math.floor(b * size), e = start + Math.floor((b + 1) * size);
      let least = -1, most = -1, gap = -1;
      for (let i = s; i < e; i++) {
        if (y[i] === null) { if (gap < 0) gap = i; continue; }
        if (least < 0 || y[i] < y[least]) least = i;
        if (most < 0 || y[i] > y[most]) most = i;
      }
      const kept = [...new Set([s, least, most, gap])].filter((i) => i >= 0 && i < e).sort((a, c) => a - c);
      for (const i of kept) points.push([x[i], y[i]]);
    }
    return points;
  }

  scaleFor(drawn) {
    let low = Infinity, high = -Infinity;
    for (const points of drawn) for (const [, y] of points) {
      if (y === null || (this.isLog && y <= 0)) continue;
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
    this.bare = !(high >= low);
    if (this.bare) [low, high] = [this.isLog ? 0.1 : 0, 1];
    if (this.isLog) [low, high] = [Math.log10(low), Math.log10(high)];
    const flat = Math.max(Math.abs(high), Math.abs(low)) * 0.02 || 1;
    const room = high / 2 - low / 2 < flat / 2 ? flat : (high / 2 - low / 2) * 0.1;
    this.yRange = [Math.max(low - room, -1.7e308), Math.min(high + room, 1.7e308)];
  }

  px(x) {
    const [from, to] = this.range;
    return to > from ? MARGIN.left + ((x / 4 - from / 4) / (to / 4 - from / 4)) * this.width : MARGIN.left + this.width / 2;
  }

  py(y) {
    const [low, high] = this.yRange;
    const v = this.isLog ? (y > 0 ? Math.log10(y) : low) : y;
    return MARGIN.top + (1 - (v / 2 - low / 2) / (high / 2 - low / 2)) * this.height;
  }

  draw() {
    const full = this.parts.plot.clientWidth || 600;
    this.width = Math.max(60, full - MARGIN.left - MARGIN.right);
    this.height = (full < 480 ? 230 : 310) - MARGIN.top - MARGIN.bottom;
    this.range = this.view || this.extent();
    const drawn = this.visible.map((i) => this.pointsOf(i, ...this.range));
    this.scaleFor(drawn);
    this.svg.setAttribute("viewBox", `0 0 ${full} ${this.height + MARGIN.top + MARGIN.bottom}`);
    this.svg.setAttribute("height", this.height + MARGIN.top + MARGIN.bottom);
    this.svg.replaceChildren();
    const clip = make("clipPath", { id: "inside" }, this.svg);
    make("rect", { x: MARGIN.left, y: MARGIN.top, width: this.width, height: this.height }, clip);
    this.drawAxes();
    const inside = make("g", { "clip-path": "url(#inside)" }, this.svg);
    this.drawBands(inside);
    let count = 0;
    this.visible.forEach((i, k) => { count += this.drawCurve(inside, drawn[k], this.members.indexOf(i) % 8); });
    this.drawMarks(inside);
    this.overlay = make("g", {}, this.svg);
    this.describe(count);
  }

  describe(count) {
    const group = this.data.groups[this.group];
    const names = this.visible.map((i) => this.data.series[i].name).slice(0, 8).join(", ") || "nothing";
    const [from, to] = this.range;
    const label = `${names} from ${group.axis} ${say(from)} to ${say(to)}, ${this.isLog ? "log" : "linear"} axis`;
    this.svg.setAttribute("aria-label", label);
    this.parts.plot.setAttribute("aria-label", `Chart: ${label}`);
    this.parts.log.setAttribute("aria-pressed", String(this.isLog));
    const set = this.parts.root.dataset;
    set.points = count;
    set.group = group.title;
    set.view = this.view ? this.view.map(say).join(" ") : "all";
    set.scale = this.isLog ? "log" : "linear";
    set.highlight = this.picked ? this.picked.anchor : "";
  }

  drawAxes() {
    const bottom = MARGIN.top + this.height, right = MARGIN.left + this.width;
    const [low, high] = this.yRange;
    if (!this.bare) for (const t of this.isLog ? logTicks(low, high) : niceTicks(low, high, 5)) {
      const y = this.py(t);
      make("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y }, this.svg);
      make("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, this.svg, say(t));
    }
    for (const t of niceTicks(...this.range, Math.max(2, this.width / 90))) {
      const x = this.px(t);
      make("line", { class: "grid", x1: x, x2: x, y1: MARGIN.top, y2: bottom }, this.svg);
      make("text", { x, y: bottom + 16, "text-anchor": "middle" }, this.svg, say(t));
    }
    make("text", { x: right, y: bottom + 32, "text-anchor": "end" }, this.svg, this.data.groups[this.group].axis);
  }

  band(parent, from, to, name) {
    const x = Math.max(this.px(from), -1e4), width = Math.max(Math.min(this.px(to), 1e4) - x, 3);
    return make("rect", { class: name, x: width === 3 ? x - 1.5 : x, y: MARGIN.top, width, height: this.height }, parent);
  }

  drawBands(parent) {
    const [from, to] = this.range;
    const first = this.visible[0];
    let labelled = false;
    if (first !== undefined) for (const [start, end, kind] of this.data.series[first].broken) {
      if (end < from || start > to) continue;
      this.band(parent, start, end, "broken");
      const x = (Math.max(this.px(start), MARGIN.left) + Math.min(this.px(end), MARGIN.left + this.width)) / 2;
      if (!labelled) make("text", { class: "broken-label", x, y: MARGIN.top + this.height - 8, "text-anchor": "middle" }, parent, kind);
      labelled = true;
    }
    if (this.picked) this.band(parent, this.picked.from, this.picked.to, "picked");
  }

  drawCurve(parent, points, colour) {
    let path = "", isDown = false, count = 0;
    const dots = points.length <= 60;
    for (const [x, y] of points) {
      if (y === null) { isDown = false; continue; }
      const at = `${this.px(x).toFixed(1)} ${this.py(y).toFixed(1)}`;
      path += (isDown ? "L" : "M") + at;
      isDown = true;
      count++;
      if (dots) make("circle", { class: `dot s${colour}`, cx: this.px(x), cy: this.py(y), r: 2.6 }, parent);
    }
    parent.prepend(make("path", { class: `curve s${colour}`, d: path || "M0 0" }));
    return count;
  }

  drawMarks(parent) {
    const group = this.data.groups[this.group];
    let taken = -Infinity;
    for (const mark of [...this.data.marks].sort((a, b) => a.x - b.x)) {
      if (mark.axis !== group.axis || mark.x < this.range[0] || mark.x > this.range[1]) continue;
      const x = this.px(mark.x);
      make("line", { class: "onset", x1: x, x2: x, y1: MARGIN.top, y2: MARGIN.top + this.height }, parent);
      const label = `onset: ${mark.label}`, half = label.length * 3.3;
      const at = Math.min(Math.max(x, MARGIN.left + half), MARGIN.left + this.width - half);
      if (at - half > taken) {
        make("text", { class: "onset-label", x: at, y: 13, "text-anchor": "middle" }, this.svg, label);
        taken = at + half;
      }
    }
  }

  xAt(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / this.width;
    const [from, to] = this.range;
    return from + Math.min(Math.max(share, 0), 1) * (to - from);
  }

  readOut(event) {
    this.overlay.replaceChildren();
    const x = this.xAt(event);
    const near = [];
    for (const i of this.visible) {
      const { x: xs, y: ys } = this.data.series[i];
      let at = lowerBound(xs, x);
      if (at === xs.length || (at > 0 && x - xs[at - 1] < xs[at] - x)) at--;
      near.push({ i, x: xs[at], y: ys[at] });
    }
    this.tip.hidden = !near.length;
    if (!near.length) return;
    const closest = near.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a)).x;
    const px = this.px(closest);
    make("line", { class: "cross", x1: px, x2: px, y1: MARGIN.top, y2: MARGIN.top + this.height }, this.overlay);
    const title = document.createElement("b");
    title.textContent = `${this.data.groups[this.group].axis} ${say(closest)}`;
    const rows = near.slice(0, 10).map((n) => {
      const colour = this.members.indexOf(n.i) % 8;
      if (n.y !== null) make("circle", { class: `dot s${colour}`, cx: this.px(n.x), cy: this.py(n.y), r: 3.6 }, this.overlay);
      const row = document.createElement("div");
      const swatch = make("svg", { viewBox: "0 0 18 8", class: `s${colour}` }, row);
      make("line", { x1: 0, x2: 18, y1: 4, y2: 4 }, swatch);
      row.append(`${this.data.series[n.i].name.slice(-40)}: ${say(n.y)}${n.x === closest ? "" : ` at ${say(n.x)}`}`);
      return row;
    });
    this.tip.replaceChildren(title, ...rows);
    const left = px + 14 + this.tip.offsetWidth > MARGIN.left + this.width ? px - 14 - this.tip.offsetWidth : px + 14;
    this.tip.style.left = `${Math.max(left, 0)}px`;
    this.tip.style.top = `${MARGIN.top + 6}px`;
  }

  listen() {
    const { plot, group, log, reset } = this.parts;
    group.addEventListener("change", () => this.choose(+group.value));
    log.addEventListener("click", () => { this.isLog = !this.isLog; this.draw(); });
    reset.addEventListener("click", () => this.reset());
    plot.addEventListener("dblclick", () => this.reset());
    plot.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      this.drag = { x: this.xAt(event), px: event.clientX, pans: event.shiftKey || event.button === 1 };
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => this.move(event));
    plot.addEventListener("pointerup", (event) => this.drop(event));
    plot.addEventListener("pointercancel", () => { this.drag = null; });
    plot.addEventListener("pointerleave", () => { this.tip.hidden = true; this.overlay.replaceChildren(); });
    plot.addEventListener("wheel", (event) => {
      if (event.deltaY > 0 && !this.view) return; // nothing left to zoom out of: let the page scroll
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.xAt(event));
    }, { passive: false });
    plot.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(plot);
  }

  move(event) {
    if (!this.drag) return this.readOut(event);
    if (this.drag.pans) return this.pan(this.drag.x - this.xAt(event));
    this.tip.hidden = true;
    this.overlay.replaceChildren();
    const ends = [this.drag.x, this.xAt(event)].sort((a, b) => a - b);
    this.band(this.overlay, ...ends, "dragged");
  }

  drop(event) {
    const drag = this.drag;
    this.drag = null;
    this.overlay.replaceChildren();
    if (!drag || drag.pans || Math.abs(event.clientX - drag.px) < 6) return;
    this.view = [drag.x, this.xAt(event)].sort((a, b) => a - b);
    this.draw();
  }

  key(event) {
    const step = (this.range[1] - this.range[0]) * 0.15;
    const actions = {
      ArrowLeft: () => this.pan(-step), ArrowRight: () => this.pan(step),
      "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), "-": () => this.zoom(1.4),
      0: () => this.reset(), Escape: () => this.reset(),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  }
}
