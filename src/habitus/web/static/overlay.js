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
