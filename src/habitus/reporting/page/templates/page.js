"use strict";
// Show values under the pointer, and open the event nearest to a click. Without scripts, the
// numbered links lead to the events.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const curve = document.querySelector(".curve");
  const cursor = document.querySelector(".cursor");
  const tip = document.querySelector(".tip");
  const near = 1.5; // percent of the width

  const clock = (seconds) => {
    const whole = Math.round(seconds);
    const pad = (n) => String(n).padStart(2, "0");
    const hours = Math.floor(whole / 3600);
    const minutes = Math.floor(whole / 60) % 60;
    return (hours ? hours + ":" + pad(minutes) : minutes) + ":" + pad(whole % 60);
  };

  const percent = (pointer) => {
    const box = curve.getBoundingClientRect();
    return Math.min(Math.max((100 * (pointer.clientX - box.left)) / box.width, 0), 100);
  };

  const documentAt = (time) => {
    let low = 0;
    let high = data.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.starts[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  const eventAt = (x) => {
    let best = -1;
    let least = near;
    data.events.forEach(([left, right], k) => {
      const distance = Math.max(left - x, x - right, 0);
      if (distance <= least) [best, least] = [k, distance];
    });
    return best;
  };

  const show = (pointer) => {
    if (!data.starts.length) return;
    const x = percent(pointer);
    const t = documentAt(data.begin + (x / 100) * (data.end - data.begin));
    const value = data.normality[t] === null ? "not judged" : "normality " + data.normality[t];
    const event = eventAt(x);
    tip.textContent =
      clock(data.starts[t]) + "  ·  " + value + "  ·  behaviour " + data.behaviours[t] +
      (event < 0 ? "" : "  ·  moment " + (event + 1));
    tip.hidden = cursor.hidden = false;
    cursor.style.left = x + "%";
    tip.style.left = x + "%";
    tip.style.transform = "translateX(" + (x < 50 ? "10px" : "calc(-100% - 10px)") + ")";
  };

  // On a phone the timeline is wider than the screen: it begins with the most unusual moment.
  const most = document.querySelector(".pill");
  const timeline = document.querySelector(".scroll");
  if (most) timeline.scrollLeft = most.offsetLeft - timeline.clientWidth / 2;

  curve.addEventListener("pointermove", show);
  curve.addEventListener("pointerleave", () => {
    tip.hidden = cursor.hidden = true;
  });
  curve.addEventListener("click", (pointer) => {
    const event = eventAt(percent(pointer));
    if (event >= 0) location.hash = "event-" + (event + 1);
  });
})();
