// The small drawing of how unusual the last minutes were: it rises where they were, and goes on as
// documents are judged. With the threshold of alarms in the picture, what is usual looks calm.

const [WIDTH, HEIGHT] = [120, 24];

// Draw what the server knows of the last minutes.
export function drawSparks(root = document) {
  for (const spark of root.querySelectorAll(".spark")) {
    const { line, threshold } = spark.dataset;
    draw(spark, JSON.parse(line), threshold ? Number(threshold) : null);
  }
}

// Draw one more document; the least usual one of a step is drawn, as the server does.
export function extend(spark, { time, normality, threshold }) {
  const line = JSON.parse(spark.dataset.line);
  const step = Number(spark.dataset.step);
  const last = Number(spark.dataset.last);
  const now = Math.floor(time / step) * step;
  const nNew = Math.round((now - last) / step);
  for (let k = 0; k < Math.min(nNew, line.length); k += 1) {
    line.shift();
    line.push(null);
  }
  const k = line.length - 1 + Math.min(nNew, 0);
  if (k < 0) return;
  line[k] = Math.min(line[k] ?? Infinity, normality);
  Object.assign(spark.dataset, { line: JSON.stringify(line), last: Math.max(now, last) });
  draw(spark, line, threshold);
}

function draw(spark, line, threshold) {
  const known = [...line, threshold ?? null].filter((value) => value !== null);
  const low = Math.min(...known);
  const height = Math.max(Math.max(...known) - low, 1);
  const place = (value) => (1 + ((value - low) / height) * (HEIGHT - 2)).toFixed(1);
  const points = line.map((value, k) => {
    if (value === null) return "";
    const pen = k && line[k - 1] !== null ? "L" : "M";
    return `${pen}${((k * WIDTH) / (line.length - 1)).toFixed(1)} ${place(value)}`;
  });
  const [path, level] = spark.children;
  path.setAttribute("d", points.filter(Boolean).join(" "));
  level.setAttribute("d", known.length > 1 && threshold !== null ? `M0 ${place(threshold)} H${WIDTH}` : "");
}
