// Shapes on a picture: what is not watched, or what alone is. Polygons in pixels of the camera,
// drawn with mouse, finger or keys.

const SVG = "http://www.w3.org/2000/svg";
// How near, in shares of the picture's width, a corner is taken for the first one.
const NEAR = 0.025;

export class Drawing {
  constructor(view, mask, region, said) {
    this.view = view;
    this.svg = view.querySelector("svg");
    [, , this.width, this.height] = this.svg.getAttribute("viewBox").split(" ").map(Number);
    this.fields = { mask, region };
    this.said = said;
    this.shapes = { mask: JSON.parse(mask.value), region: JSON.parse(region.value) };
    this.kind = "mask";
    this.open = [];
    this.chosen = null;
    this.cursor = null;
    this.past = [];
    this.dragged = null;
    this.listen();
    this.draw();
  }

  // Remember how it is, so that it can be undone.
  keep() { this.past.push(structuredClone({ shapes: this.shapes, open: this.open })); }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    Object.assign(this, before);
    this.chosen = null;
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
    if (this.open.length < 3) return this.draw("a shape has at least three corners");
    this.keep();
    this.shapes[this.kind] = [...this.shapes[this.kind], this.open];
    this.chosen = [this.kind, this.shapes[this.kind].length - 1];
    this.open = [];
    this.draw(this.kind === "mask" ? "not watched here" : "only watched here");
  }

  giveUp() {
    if (!this.open.length) return;
    this.keep();
    this.open = [];
    this.draw("given up");
  }

  remove() {
    if (this.open.length) return this.giveUp();
    const [kind, number] = this.chosen ?? this.all().at(-1) ?? [];
    if (!kind) return;
    this.keep();
    this.shapes[kind] = this.shapes[kind].filter((_, k) => k !== number);
    this.chosen = null;
    this.draw("deleted");
  }

  all() {
    return ["mask", "region"].flatMap((kind) => this.shapes[kind].map((_, k) => [kind, k]));
  }

  chooseNext() {
    const all = this.all();
    if (!all.length) return;
    const here = all.findIndex(([kind, k]) => this.chosen?.[0] === kind && this.chosen[1] === k);
    this.chosen = all[(here + 1) % all.length];
    this.draw(`shape ${((here + 1) % all.length) + 1} of ${all.length}`);
  }

  draw(words) {
    const shape = (name, points, classes) => {
      const element = document.createElementNS(SVG, name);
      element.setAttribute("points", points.map((point) => point.join(",")).join(" "));
      element.setAttribute("class", classes);
      return element;
    };
    const drawn = this.all().map(([kind, k]) => {
      const chosen = this.chosen?.[0] === kind && this.chosen[1] === k;
      const polygon = shape("polygon", this.shapes[kind][k], `${kind}${chosen ? " chosen" : ""}`);
      polygon.dataset.shape = `${kind} ${k}`;
      return polygon;
    });
    if (this.open.length) drawn.push(shape("polyline", this.open, "open"));
    drawn.push(...this.open.map((point) => this.circle(point, 0.009, "point")));
    if (this.cursor) drawn.push(this.circle(this.cursor, 0.018, "cursor"));
    this.svg.replaceChildren(...drawn);
    for (const kind of ["mask", "region"]) this.fields[kind].value = JSON.stringify(this.shapes[kind]);
    const meanings = { mask: "not watched", region: "alone watched" };
    const counts = ["mask", "region"].filter((kind) => this.shapes[kind].length)
      .map((kind) => `${this.shapes[kind].length} ${meanings[kind]}`).join(", ") || "the whole picture is watched";
    this.said.textContent = words ? `${words} · ${counts}` : counts;
    for (const button of document.querySelectorAll('[data-draw="mask"], [data-draw="region"]')) {
      button.setAttribute("aria-pressed", String(button.dataset.draw === this.kind));
    }
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

  listen() {
    this.view.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.cursor = null;
      const shape = event.target.closest?.("polygon")?.dataset.shape?.split(" ");
      if (shape && !this.open.length) {
        this.chosen = [shape[0], Number(shape[1])];
        return this.draw("chosen");
      }
      this.add(this.place(event));
    });
    this.view.addEventListener("dblclick", () => this.open.length > 2 && this.close());
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("blur", () => { this.cursor = null; this.draw(); });
    const tools = {
      mask: () => { this.kind = "mask"; this.draw(); },
      region: () => { this.kind = "region"; this.draw(); },
      close: () => this.close(),
      undo: () => this.undo(),
      delete: () => this.remove(),
    };
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
    else if (event.key === "s") this.chooseNext();
    else return;
    event.preventDefault();
  }
}
