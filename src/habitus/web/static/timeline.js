// How unusual a camera's view was: as a line that rises, behaviours as a band, events, gaps.
// Zoomed with the wheel, by dragging, or with keys; what is shown is always fetched in that detail.

import uPlot from "./vendor/uplot/uPlot.esm.js";
import { ask } from "./asking.js";
import { colourOf } from "./behaviours.js";
import { onKeys } from "./keys.js";
import { drawnOf, normalityOf, unusualOf } from "./scale.js";
import { offsetText, timeText } from "./times.js";

const SHORTEST = 60;
const LONGEST = 90 * 86400;
const HEIGHT = 230;
const BAND = 12;
// Events whose lines would hide what is below them: they are dots alone.
const MANY = 60;
// Seconds after which a timeline that ends now is moved on.
const FOLLOW = 10;

const SPLITS = [0, 25, 50, 75, 100].map(normalityOf).reverse();
const clock = () => Date.now() / 1000;
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

// Colours of the theme as a canvas takes them.
function colours() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const found = {};
  for (const name of ["ink", "muted", "line", "accent", "alarm", "sunken", "surface"]) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

export class Timeline {
  constructor(root, camera, readout) {
    this.root = root;
    this.camera = camera;
    this.readout = readout;
    this.chosen = -1;
    this.drawn = null;
    this.played = { spans: [], at: null };
    this.onMoment = null;
    this.threshold = root.dataset.threshold ? Number(root.dataset.threshold) : null;
    this.found = { times: [], normality: [], behaviour: [], events: [], troubles: [], step: 60 };
    this.colours = colours();
    // Where a recording begins of which nobody knows when it was: times are counted from there.
    this.origin = root.dataset.origin ? Number(root.dataset.origin) : null;
    const at = Number(root.dataset.at);
    const until = at ? at + 300 : Number(root.dataset.until) || clock();
    // Of a new camera, what there is of it would be a line at the edge of a day.
    const age = until - Number(this.origin ?? root.dataset.created);
    const span = [600, 3600, 21600].find((seconds) => age < seconds) ?? 86400;
    this.since = at ? at - 300 : until - span;
    this.until = until;
    this.listen();
    this.fetch();
    setInterval(() => this.follow(), FOLLOW * 1000);
  }

  get span() { return this.until - this.since; }
  // When the event that is chosen began.
  get moment() { return this.found.events[this.chosen]?.start ?? null; }
  get isNow() { return this.until >= clock() - 2 * FOLLOW - this.span / 50; }

  // Show a span; it is fetched a moment later, so that a turn of the wheel is one request.
  show(since, until) {
    const span = clamp(until - since, SHORTEST, LONGEST);
    const end = Math.min(since + (until - since + span) / 2, clock() + span / 20);
    [this.since, this.until] = [end - span, end];
    this.drawn?.setScale("x", { min: this.since, max: this.until });
    this.press();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.fetch(), 120);
  }

  zoom(factor, middle = (this.since + this.until) / 2) {
    this.show(middle - (middle - this.since) * factor, middle + (this.until - middle) * factor);
  }

  move(share) { this.show(this.since + share * this.span, this.until + share * this.span); }

  setSpan(seconds) {
    const end = this.isNow ? clock() : Math.min(clock(), (this.since + this.until + seconds) / 2);
    this.show(end - seconds, end);
  }

  follow() {
    if (document.hidden || !this.wasNow) return;
    this.show(clock() - this.span, clock());
  }

  renew() { this.fetch(); }

  // A document was judged: it is drawn at once where seconds are shown.
  add(news) {
    if (news.threshold !== null) this.threshold = news.threshold;
    if (!this.drawn || this.found.step > 5 || !this.isNow) return;
    this.found.times.push(news.time);
    this.found.normality.push(news.normality);
    this.found.behaviour.push(news.behaviour || null);
    this.drawn.setData(this.data(), false);
    this.drawn.redraw();
  }

  async fetch() {
    this.wasNow = this.isNow;
    const asked = [this.since, this.until];
    const points = clamp(Math.round(this.root.clientWidth), 200, 2000);
    const query = new URLSearchParams({ since: asked[0].toFixed(3), until: asked[1].toFixed(3), points });
    try {
      const answer = await ask(`/api/cameras/${this.camera}/timeline?${query}`);
      if (!answer.ok) return;
      const found = await answer.json();
      if (asked[0] !== this.since || asked[1] !== this.until) return;
      this.found = found;
      this.chosen = -1;
    } catch { return; }
    this.draw();
  }

  data() { return [this.found.times, this.found.normality.map(drawnOf)]; }

  draw() {
    if (this.drawn) {
      this.drawn.setData(this.data(), false);
      this.drawn.setScale("x", { min: this.since, max: this.until });
    } else {
      this.drawn = new uPlot(this.options(), this.data(), this.root);
    }
    this.press();
  }

  // Show what can be played, and what is being played.
  mark(spans, at) {
    this.played = { spans, at };
    this.drawn?.redraw(false);
  }

  press() {
    for (const button of document.querySelectorAll("[data-span]")) {
      button.setAttribute("aria-pressed", String(Math.abs(this.span - Number(button.dataset.span)) < 1));
    }
  }

  options() {
    const axis = {
      stroke: () => this.colours.muted,
      grid: { stroke: () => this.colours.line, width: 1 },
      ticks: { stroke: () => this.colours.line, width: 1 },
      font: "12px system-ui, sans-serif",
    };
    return {
      width: this.root.clientWidth,
      height: HEIGHT,
      padding: [10, 20, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 7, fill: () => this.colours.accent },
      },
      scales: { x: { time: true, min: this.since, max: this.until }, y: { dir: -1, range: (u, low, high) => this.range(low, high) } },
      axes: [
        this.origin === null
          ? { ...axis, space: 70, values: (u, ticks, i, space, step) => ticks.map((t, k) => label(t, step, k === 0 || newDay(ticks, k))) }
          : { ...axis, space: 70, splits: (u, i, low, high, step) => countedFrom(this.origin, low, high, step), values: (u, ticks) => ticks.map((t) => this.text(t)) },
        { ...axis, size: 38, splits: (u, axis, low, high) => SPLITS.filter((value) => value >= low && value <= high), values: (u, ticks) => ticks.map(unusualOf), label: "how unusual", labelSize: 18, labelGap: -2, labelFont: axis.font },
      ],
      series: [
        {},
        { stroke: () => this.colours.accent, width: 1.5, spanGaps: false, points: { show: false }, fill: () => `color-mix(in srgb, ${this.colours.accent} 12%, transparent)`, fillTo: (u) => u.scales.y.max },
      ],
      hooks: {
        drawClear: [(u) => this.drawTroubles(u)],
        draw: [(u) => { this.drawThreshold(u); this.drawBand(u); this.drawEvents(u); this.drawPlayed(u); }],
        setSelect: [(u) => this.select(u)],
        setCursor: [(u) => this.hover(u)],
      },
    };
  }

  // What is unusual goes up. Room at the bottom for the band, at the top for the marks.
  range(low, high) {
    if (low === null || high === null) return [-10, normalityOf(0)];
    if (this.threshold !== null) [low, high] = [Math.min(low, this.threshold), Math.max(high, this.threshold)];
    const height = Math.max(high - low, 1);
    return [low - 0.14 * height, high + 0.16 * height];
  }

  // Where alarms begin now; it follows the model and the budget, so that it was another before.
  drawThreshold(u) {
    if (this.threshold === null) return;
    const pen = u.ctx;
    const { left, width } = u.bbox;
    const y = u.valToPos(this.threshold, "y", true);
    pen.save();
    pen.strokeStyle = this.colours.alarm;
    pen.lineWidth = devicePixelRatio;
    pen.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    pen.beginPath();
    pen.moveTo(left, y);
    pen.lineTo(left + width, y);
    pen.stroke();
    pen.restore();
  }

  drawTroubles(u) {
    const pen = u.ctx;
    const { left, top, width, height } = u.bbox;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    pen.fillStyle = this.colours.sunken;
    for (const { start, end } of this.found.troubles) {
      const x = u.valToPos(start, "x", true);
      pen.fillRect(x, top, Math.max(2, u.valToPos(end ?? clock(), "x", true) - x), height);
    }
    pen.restore();
  }

  drawBand(u) {
    const { times, behaviour, step } = this.found;
    const pen = u.ctx;
    const { left, top, width, height } = u.bbox;
    const tall = BAND * devicePixelRatio;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    for (let first = 0; first < times.length;) {
      let last = first;
      while (last + 1 < times.length && behaviour[last + 1] === behaviour[first] && times[last + 1] - times[last] < 1.5 * step) last += 1;
      if (behaviour[first]) {
        const x = u.valToPos(times[first], "x", true);
        pen.fillStyle = colourOf(behaviour[first]);
        pen.fillRect(x, top + height - tall, u.valToPos(times[last] + step, "x", true) - x + 0.5, tall);
      }
      first = last + 1;
    }
    pen.restore();
  }

  drawEvents(u) {
    const pen = u.ctx;
    const { left, top, width, height } = u.bbox;
    const size = 5 * devicePixelRatio;
    const withLines = this.found.events.length < MANY;
    this.found.events.forEach((event, k) => {
      const x = u.valToPos(event.start, "x", true);
      if (x < left || x > left + width) return;
      const chosen = k === this.chosen;
      pen.strokeStyle = pen.fillStyle = event.review === "normal" ? this.colours.muted : this.colours.alarm;
      pen.lineWidth = (chosen ? 2.5 : 1) * devicePixelRatio;
      pen.globalAlpha = chosen ? 1 : 0.75;
      if (chosen || withLines) {
        pen.beginPath();
        pen.moveTo(x, top + size);
        pen.lineTo(x, top + height - BAND * devicePixelRatio);
        pen.stroke();
      }
      pen.globalAlpha = 1;
      pen.beginPath();
      pen.arc(x, top + size, (chosen ? 1.5 : 1) * size, 0, 7);
      pen.fill();
    });
  }

  // A line where there are pictures, and one at the moment that is shown.
  drawPlayed(u) {
    const pen = u.ctx;
    const { left, top, width, height } = u.bbox;
    const thick = 3 * devicePixelRatio;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    pen.fillStyle = this.colours.accent;
    for (const [start, end] of this.played.spans) {
      const x = u.valToPos(start, "x", true);
      pen.fillRect(x, top + height - BAND * devicePixelRatio - thick, Math.max(thick, u.valToPos(end, "x", true) - x), thick);
    }
    pen.fillStyle = this.colours.ink;
    if (this.played.at !== null) pen.fillRect(u.valToPos(this.played.at, "x", true) - thick / 4, top, thick / 2, height);
    pen.restore();
  }

  select(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    const [since, until] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.show(since, until);
  }

  // Number of the event that is nearest to a place on the plot, within some pixels.
  nearest(left, within = 8) {
    let [best, distance] = [-1, within];
    this.found.events.forEach((event, k) => {
      const away = Math.abs(this.drawn.valToPos(event.start, "x") - left);
      if (away < distance) [best, distance] = [k, away];
    });
    return best;
  }

  hover(u) {
    const { left, idx } = u.cursor;
    if (left === null || left === undefined || left < 0) return;
    const near = this.nearest(left);
    u.over.style.cursor = near >= 0 ? "pointer" : "crosshair";
    this.chosen = near;
    if (near >= 0) return this.describe(this.found.events[near]);
    const time = u.posToVal(left, "x");
    const words = [this.text(time, this.span < 7200 ? "full" : "moment")];
    const trouble = this.found.troubles.find(({ start, end }) => start <= time && time <= (end ?? clock()));
    if (trouble) words.push("not judged", trouble.reason ? `${trouble.kind}: ${trouble.reason}` : trouble.kind);
    else if (idx !== null && idx !== undefined) {
      const normality = this.found.normality[idx];
      if (normality !== null && normality !== undefined) words.push(`how unusual: ${unusualOf(normality)} of 100`);
      if (this.found.behaviour[idx]) words.push(this.nameOf(this.found.behaviour[idx], time));
    }
    this.readout.textContent = words.join(" · ");
  }

  // What a behaviour of the model that was in use at a time is called.
  nameOf(number, time) {
    const model = this.found.names?.findLast(({ since }) => since <= time);
    return model?.names[number] ?? `behaviour ${number}`;
  }

  // A time in words; in a recording without a date, where it is.
  text(time, style = "full") {
    return this.origin === null ? timeText(new Date(time * 1000), style) : offsetText(time - this.origin);
  }

  describe(event) {
    this.readout.textContent = `${this.text(event.start)} · ${event.explanation}`;
    this.drawn.redraw(false);
  }

  choose(by) {
    const n = this.found.events.length;
    if (!n) return;
    this.chosen = this.chosen < 0 ? (by > 0 ? 0 : n - 1) : clamp(this.chosen + by, 0, n - 1);
    this.root.focus({ preventScroll: true });
    this.describe(this.found.events[this.chosen]);
  }

  open() {
    const event = this.found.events[this.chosen];
    if (!event) return false;
    location.href = `/events/${event.id}`;
    return true;
  }

  listen() {
    const plot = this.root;
    plot.addEventListener("wheel", (event) => {
      if (!this.drawn) return;
      event.preventDefault();
      const { left } = this.drawn.over.getBoundingClientRect();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX / 1000);
      else this.zoom(1.0015 ** event.deltaY, this.drawn.posToVal(event.clientX - left, "x"));
    }, { passive: false });
    let pressed = 0;
    plot.addEventListener("mousedown", (event) => { pressed = event.clientX; });
    plot.addEventListener("click", (event) => {
      if (Math.abs(event.clientX - pressed) > 4 || !this.drawn) return;
      const { left } = this.drawn.over.getBoundingClientRect();
      this.chosen = this.nearest(event.clientX - left, 12);
      if (this.open() || this.onMoment?.(this.drawn.posToVal(event.clientX - left, "x")) !== false) return;
      this.readout.textContent = "Of that moment there is no video any more: the last ten minutes are kept, and the clips of events.";
    });
    const actions = {
      in: () => this.zoom(0.5),
      out: () => this.zoom(2),
      earlier: () => this.move(-0.5),
      later: () => this.move(0.5),
      now: () => this.show(clock() - this.span, clock()),
      all: () => this.show(clock() - 30 * 86400, clock()),
    };
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => actions[button.dataset.zoom]());
    }
    for (const button of document.querySelectorAll("[data-span]")) {
      button.addEventListener("click", () => this.setSpan(Number(button.dataset.span)));
    }
    onKeys({
      "+": actions.in,
      "=": actions.in,
      "-": actions.out,
      ArrowLeft: actions.earlier,
      ArrowRight: actions.later,
      Home: actions.all,
      End: actions.now,
      "[": () => this.choose(-1),
      "]": () => this.choose(1),
      Enter: (event) => (event.target.closest("a, button, summary") ? false : this.open()),
    });
    new ResizeObserver(() => this.drawn?.setSize({ width: plot.clientWidth, height: HEIGHT })).observe(plot);
    const paint = () => { this.colours = colours(); this.drawn?.redraw(); };
    document.addEventListener("theme", paint);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  }
}

const newDay = (ticks, k) => new Date(ticks[k] * 1000).getDate() !== new Date(ticks[k - 1] * 1000).getDate();

// Round numbers of seconds from the beginning.
function countedFrom(origin, low, high, step) {
  const first = Math.max(0, Math.ceil((low - origin) / step));
  const last = Math.min(Math.floor((high - origin) / step), first + MANY);
  return Array.from({ length: Math.max(0, last - first + 1) || 0 }, (_, k) => origin + (first + k) * step);
}

const two = (number) => String(number).padStart(2, "0");
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
function label(tick, step, withDay) {
  const date = new Date(tick * 1000);
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]}`;
  if (step >= 86400) return day;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}${step < 60 ? `:${two(date.getSeconds())}` : ""}`;
  return withDay ? `${time}\n${day}` : time;
}
