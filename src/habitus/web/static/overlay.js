// What is drawn over a picture or a video, in pixels of the camera: heat, boxes, tracks, arrows.

export const HEAT = "224 0 122";
const MARK = "#f0e442";

// A pen for a canvas that covers a view in which the picture is as large as it can be; null where
// the canvas is hidden.
export function penOver(canvas, width, height) {
  const view = canvas.parentElement.getBoundingClientRect();
  const ratio = devicePixelRatio;
  canvas.width = view.width * ratio;
  canvas.height = view.height * ratio;
  if (canvas.hidden || !width) return null;
  const scale = Math.min(canvas.width / width, canvas.height / height);
  const pen = canvas.getContext("2d");
  pen.translate((canvas.width - scale * width) / 2, (canvas.height - scale * height) / 2);
  pen.scale(scale, scale);
  pen.hairline = ratio / scale;
  return pen;
}

// Heat as x, y, width, height and strength from 0 to 1.
export function drawHeat(pen, heat) {
  for (const [x, y, width, height, strength] of heat) {
    const radius = 0.75 * Math.max(width, height);
    const [middleX, middleY] = [x + width / 2, y + height / 2];
    const glow = pen.createRadialGradient(middleX, middleY, 0, middleX, middleY, radius);
    glow.addColorStop(0, `rgb(${HEAT} / ${0.7 * strength})`);
    glow.addColorStop(1, `rgb(${HEAT} / 0)`);
    pen.fillStyle = glow;
    pen.fillRect(middleX - radius, middleY - radius, 2 * radius, 2 * radius);
  }
}

// Draw lines twice, so that they are seen on light and on dark.
function outlined(pen, width, colour, path) {
  for (const [stroke, line] of [["rgb(0 0 0 / 60%)", 2.2 * width], [colour, width]]) {
    pen.strokeStyle = stroke;
    pen.lineWidth = line * pen.hairline;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    path();
    pen.stroke();
  }
}

export function drawBoxes(pen, boxes) {
  outlined(pen, 2, MARK, () => {
    for (const [left, top, right, bottom] of boxes) pen.rect(left, top, right - left, bottom - top);
  });
}

// Boxes in which one thing may be, one second after the other: how far apart their centres are, in
// their larger sides.
const NEAR = 1.5;
const centreOf = ([left, top, right, bottom]) => [(left + right) / 2, (top + bottom) / 2];
function apart(one, other) {
  const [[x, y], [otherX, otherY]] = [centreOf(one), centreOf(other)];
  const side = ([left, top, right, bottom]) => Math.max(right - left, bottom - top);
  return Math.hypot(otherX - x, otherY - y) / Math.max(side(one), side(other));
}

// Where the thing of the strongest moment was, before and after it, as far as it can be followed:
// seconds and centres of its boxes.
export function followed(points, peak) {
  const seen = points.filter(({ boxes }) => boxes.length);
  const middle = seen.reduce((best, { at }, k) => (Math.abs(at - peak) < Math.abs(seen[best].at - peak) ? k : best), 0);
  const way = (ordered, from) => {
    const found = [];
    for (const { at, boxes } of ordered) {
      const box = boxes.toSorted((one, other) => apart(from, one) - apart(from, other))[0];
      if (apart(from, box) > NEAR) break;
      found.push({ at, centre: centreOf(box) });
      from = box;
    }
    return found;
  };
  if (!seen.length) return [];
  const first = seen[middle].boxes[0];
  return [...way(seen.slice(0, middle).reverse(), first).reverse(), { at: seen[middle].at, centre: centreOf(first) }, ...way(seen.slice(middle + 1), first)];
}

// The way that something took, with a dot at each second.
export function drawTrack(pen, centres) {
  if (centres.length < 2) return;
  outlined(pen, 1.5, MARK, () => centres.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y))));
  pen.fillStyle = MARK;
  for (const [x, y] of centres) {
    pen.beginPath();
    pen.arc(x, y, 2.5 * pen.hairline, 0, 7);
    pen.fill();
  }
}

export function drawArrows(pen, arrows) {
  outlined(pen, 1.5, MARK, () => {
    for (const [x, y, tipX, tipY] of arrows) {
      const angle = Math.atan2(tipY - y, tipX - x);
      const barb = Math.min(6, 0.4 * Math.hypot(tipX - x, tipY - y));
      pen.moveTo(x, y);
      pen.lineTo(tipX, tipY);
      for (const side of [-1, 1]) {
        pen.moveTo(tipX, tipY);
        pen.lineTo(tipX - barb * Math.cos(angle + side * 0.5), tipY - barb * Math.sin(angle + side * 0.5));
      }
    }
  });
}
