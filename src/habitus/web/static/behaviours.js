// Behaviours: their colours, which are those of the report, and their names.

const COLOURS = ["#56B4E9", "#882255", "#B5B5AE", "#4B3FA8", "#CC79A7", "#7A6A2C", "#BFE3F7", "#3D4A52"];

export const colourOf = (number) => COLOURS[(number - 1) % COLOURS.length];

export function behaviourChip(number, text) {
  const chip = document.createElement("span");
  chip.className = "behaviour";
  const swatch = document.createElement("span");
  swatch.className = `swatch behaviour-${((number - 1) % COLOURS.length) + 1}`;
  chip.append(swatch, text || `behaviour ${number}`);
  return chip;
}
