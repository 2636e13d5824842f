// The zones of a camera: drawn on its picture with mouse, finger or keys, and listed beside it.
// What they are is in one hidden field, as JSON.

import { watchPictures } from "./pictures.js";

const SVG = "http://www.w3.org/2000/svg";
// How near, in shares of the picture's width, a corner is taken for the first one.
const NEAR = 0.025;
const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const MEANINGS = { own: "own budget and hours", watch: "alarms only from here", ignore: "ignored" };
const part = (id) => document.getElementById(id);
const cornersIn = (text) => text.trim().split(/[\s;]+/).map((pair) => pair.split(",").map(Number));
const isPolygon = (corners) => corners.length > 2 && corners.every((corner) => corner.length === 2 && corner.every(Number.isFinite));

class ZoneEditor {
  constructor() {
    this.view = part("canvas");
    this.svg = this.view.querySelector("svg");
    [, , this.width, this.height] = this.svg.getAttribute("viewBox").split(" ").map(Number);
    this.zones = JSON.parse(part("zones").value);
    this.open = [];
    this.chosen = null;
    this.cursor = null;
    this.dragged = null;
    this.past = [];
    this.listen();
    this.list();
    this.draw();
  }

  // Remember how it is, so that it can be undone.
  keep() { this.past.push(structuredClone({ zones: this.zones, open: this.open })); }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    Object.assign(this, before);
    this.chosen = null;
    this.list();
    this.draw("undone");
  }

  add([x, y]) {
    const [first] = this.open;
    const last = this.open.at(-1);
    const near = (point) => Math.hypot(point[0] - x, point[1] - y) < NEAR * this.width;
    if (this.open.length > 2 && (near(first) || near(last))) return this.close();
    if (last && near(last)) return;
    this.keep();
    this.open = [...this.open, [Math.round(x), Math.round(y)]];
    this.draw(`corner ${this.open.length}`);
  }

  close() {
    if (this.open.length < 3) return this.draw("a zone has at least three corners: set them on the picture");
    this.keep();
    const polygon = this.open;
    this.open = [];
    this.append(polygon);
  }

  // A zone in the middle, for those who type its corners.
  addInMiddle() {
    this.keep();
    const [x, y] = [this.width, this.height].map((size) => [Math.round(size / 3), Math.round(2 * size / 3)]);
    this.append([[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]]);
    this.card(this.chosen).querySelector("details").open = true;
  }

  append(polygon) {
    const names = new Set(this.zones.map((zone) => zone.name));
    let number = this.zones.length + 1;
    while (names.has(`Zone ${number}`)) number += 1;
    this.zones.push({ name: `Zone ${number}`, kind: "own", polygon, alerts_per_day: null, hours: [] });
    this.chosen = this.zones.length - 1;
    this.list();
    this.draw("a new zone: give it a name");
    const name = this.card(this.chosen).querySelector('[data-zone="name"]');
    name.focus();
    name.select();
  }

  giveUp() {
    if (!this.open.length) return;
    this.keep();
    this.open = [];
    this.draw("given up");
  }

  remove(number = this.chosen ?? this.zones.length - 1) {
    if (this.open.length) return this.giveUp();
    if (!this.zones[number]) return;
    this.keep();
    const [gone] = this.zones.splice(number, 1);
    this.chosen = null;
    this.list();
    this.draw(`${gone.name} is deleted`);
  }

  choose(number) {
    this.chosen = number;
    this.draw(this.zones[number]?.name);
  }

  card(number) { return part("zone-list").children[number]; }

  // The list beside the picture.
  list() {
    part("zone-list").replaceChildren(...this.zones.map((zone, number) => this.entry(zone, number)));
  }

  entry(zone, number) {
    const card = part("zone-template").content.firstElementChild.cloneNode(true);
    const field = (name) => card.querySelector(`[data-zone="${name}"]`);
    const say = () => {
      card.querySelector("legend").textContent = `Zone ${zone.name}`;
      card.querySelector("[data-called]").textContent = ` ${zone.name}`;
      card.querySelector(".zone-more").hidden = zone.kind === "ignore";
    };
    const change = (name, value) => {
      this.keep();
      zone[name] = value;
      if (zone.kind === "ignore") Object.assign(zone, { alerts_per_day: null, hours: [] });
      say();
      this.draw();
    };
    field("name").value = zone.name;
    field("kind").value = zone.kind;
    field("alerts_per_day").value = zone.alerts_per_day ?? "";
    field("polygon").value = zone.polygon.map((corner) => corner.join(",")).join(" ");
    field("name").addEventListener("input", (event) => change("name", event.target.value));
    field("kind").addEventListener("change", (event) => { change("kind", event.target.value); this.list(); this.card(number).querySelector('[data-zone="kind"]').focus(); });
    field("alerts_per_day").addEventListener("input", (event) => change("alerts_per_day", event.target.value === "" ? null : Number(event.target.value)));
    field("polygon").addEventListener("change", (event) => {
      const corners = cornersIn(event.target.value);
      event.target.setCustomValidity(isPolygon(corners) ? "" : "at least three corners such as 0,0 120,0 120,40");
      if (isPolygon(corners)) change("polygon", corners);
      else event.target.reportValidity();
    });
    card.addEventListener("focusin", () => { if (this.chosen !== number) this.choose(number); });
    card.querySelector('[data-do="delete"]').addEventListener("click", () => this.remove(number));
    card.querySelector('[data-do="hours"]').addEventListener("click", () => {
      change("hours", [...(zone.hours ?? []), { days: [...DAYS], start: "22:00", end: "06:00" }]);
      this.list();
      this.card(number).querySelector(".hours:last-child input").focus();
    });
    card.querySelector("[data-hours]").replaceChildren(...(zone.hours ?? []).map((span) => this.hours(zone, span, number)));
    say();
    return card;
  }

  hours(zone, span, number) {
    const row = part("hours-template").content.firstElementChild.cloneNode(true);
    for (const box of row.querySelectorAll("[type=checkbox]")) {
      box.checked = !span.days?.length || span.days.includes(box.value);
      box.addEventListener("change", () => {
        this.keep();
        span.days = [...row.querySelectorAll(":checked")].map((each) => each.value);
        box.setCustomValidity("");
        if (!span.days.length) { box.checked = true; span.days = [box.value]; }
        this.draw();
      });
    }
    for (const input of row.querySelectorAll("[data-hour]")) {
      input.value = span[input.dataset.hour];
      input.addEventListener("change", () => { this.keep(); span[input.dataset.hour] = input.value; this.draw(); });
    }
    row.querySelector('[data-do="fewer"]').addEventListener("click", () => {
      this.keep();
      zone.hours = zone.hours.filter((each) => each !== span);
      this.list();
      this.draw();
      this.card(number).querySelector('[data-do="hours"]').focus();
    });
    return row;
  }

  draw(words) {
    const shape = (name, points, classes) => {
      const element = document.createElementNS(SVG, name);
      element.setAttribute("points", points.map((point) => point.join(",")).join(" "));
      element.setAttribute("class", classes);
      return element;
    };
    const drawn = this.zones.flatMap((zone, k) => {
      const polygon = shape("polygon", zone.polygon, `${zone.kind}${k === this.chosen ? " chosen" : ""}`);
      polygon.dataset.zone = k;
      return [polygon, this.label(zone)];
    });
    const corners = this.zones[this.chosen]?.polygon ?? [];
    drawn.push(...corners.map((corner, k) => {
      const circle = this.circle(corner, 0.012, "corner");
      circle.dataset.corner = k;
      return circle;
    }));
    if (this.open.length) drawn.push(shape("polyline", this.open, "open"));
    drawn.push(...this.open.map((point) => this.circle(point, 0.009, "point")));
    if (this.cursor) drawn.push(this.circle(this.cursor, 0.018, "cursor"));
    this.svg.replaceChildren(...drawn);
    part("zones").value = JSON.stringify(this.zones);
    [...part("zone-list").children].forEach((card, k) => card.classList.toggle("chosen", k === this.chosen));
    const all = this.zones.map((zone) => `${zone.name}: ${MEANINGS[zone.kind]}`).join(", ") || "the whole picture is watched";
    part("draw-said").textContent = words ? `${words} · ${all}` : all;
  }

  label(zone) {
    const text = document.createElementNS(SVG, "text");
    const middle = (axis) => zone.polygon.reduce((sum, corner) => sum + corner[axis], 0) / zone.polygon.length;
    for (const [key, value] of Object.entries({ x: middle(0), y: middle(1), "font-size": 0.03 * this.width })) {
      text.setAttribute(key, value);
    }
    text.textContent = zone.name;
    return text;
  }

  circle([x, y], share, name) {
    const circle = document.createElementNS(SVG, "circle");
    for (const [key, value] of Object.entries({ cx: x, cy: y, r: share * this.width, class: name })) {
      circle.setAttribute(key, value);
    }
    return circle;
  }

  // Where on the camera's picture somebody points.
  place(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [Math.max(0, Math.min(this.width, point.x)), Math.max(0, Math.min(this.height, point.y))];
  }

  press(event) {
    const { corner } = event.target.dataset ?? {};
    this.wasDragged = corner !== undefined && !this.open.length && !event.button;
    if (!this.wasDragged) return;
    this.keep();
    this.dragged = Number(corner);
    this.view.setPointerCapture(event.pointerId);
  }

  // A click comes after the picture has the focus, which a new zone's name then takes.
  click(event) {
    if (this.wasDragged) return;
    this.cursor = null;
    const { zone } = event.target.dataset ?? {};
    if (zone !== undefined && !this.open.length) this.choose(Number(zone));
    else this.add(this.place(event));
  }

  drag(event) {
    if (this.dragged === null) return;
    const zone = this.zones[this.chosen];
    zone.polygon[this.dragged] = this.place(event).map(Math.round);
    this.card(this.chosen).querySelector('[data-zone="polygon"]').value = zone.polygon.map((corner) => corner.join(",")).join(" ");
    this.draw(`corner ${this.dragged + 1}`);
  }

  listen() {
    this.view.addEventListener("pointerdown", (event) => this.press(event));
    this.view.addEventListener("click", (event) => this.click(event));
    this.view.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) this.view.addEventListener(end, () => { this.dragged = null; });
    this.view.addEventListener("dblclick", () => this.open.length > 2 && this.close());
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("blur", () => { this.cursor = null; this.draw(); });
    const tools = { close: () => this.close(), undo: () => this.undo(), add: () => this.addInMiddle() };
    for (const button of document.querySelectorAll("[data-draw]")) {
      button.addEventListener("click", tools[button.dataset.draw]);
    }
  }

  key(event) {
    const step = (event.shiftKey ? 0.1 : 0.02) * this.width;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (move) {
      const [x, y] = this.cursor ?? [this.width / 2, this.height / 2];
      const clamp = (value, most) => Math.max(0, Math.min(most, value));
      this.cursor = [clamp(x + step * move[0], this.width), clamp(y + step * move[1], this.height)];
      this.draw(`${Math.round(this.cursor[0])}, ${Math.round(this.cursor[1])}`);
    } else if (event.key === "Enter") {
      this.cursor ??= [this.width / 2, this.height / 2];
      this.add(this.cursor);
    } else if (event.key === "Backspace") this.undo();
    else if (event.key === "Delete") this.remove();
    else if (event.key === "Escape" && this.open.length) this.giveUp();
    else if (event.key === "s" && this.zones.length) this.choose(((this.chosen ?? -1) + 1) % this.zones.length);
    else return;
    event.preventDefault();
  }
}

new ZoneEditor();
watchPictures();
