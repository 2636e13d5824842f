// Times in the zone and language of the browser.

const STYLES = {
  moment: { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  second: {
    weekday: "short", day: "numeric", month: "short",
    hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  },
  short: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  full: {
    weekday: "long", day: "numeric", month: "long", year: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  },
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
};
const FORMATS = Object.fromEntries(
  Object.entries(STYLES).map(([name, style]) => [name, new Intl.DateTimeFormat("en-GB", style)]),
);

export function timeText(date, style) {
  return style === "ago" ? ago(date) : FORMATS[style].format(date);
}

// Where in a recording something is, as the server writes it.
export function offsetText(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

function ago(date) {
  const seconds = (Date.now() - date) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 21600) return `${Math.round(seconds / 3600)} h ago`;
  return FORMATS.short.format(date);
}

export function writeTimes(root = document) {
  for (const element of root.querySelectorAll("time[data-style]")) {
    const date = new Date(element.dateTime);
    const text = timeText(date, element.dataset.style);
    if (element.textContent !== text) element.textContent = text;
    element.title = FORMATS.full.format(date);
  }
}
