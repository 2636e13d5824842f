// One scale for all that is unusual, as `habitus.rarity` has it: from 0 for what happens each minute
// to 100 for what happens once a year. Normality is the logarithm of its probability in a second.

const MINUTE = Math.log(60);
const YEAR = Math.log(365 * 86400) - MINUTE;

export const unusualOf = (normality) => Math.round(100 * Math.min(1, Math.max(0, (-normality - MINUTE) / YEAR)));
// What is drawn: as 0, all that is more usual.
export const drawnOf = (normality) => (normality === null ? null : Math.min(-MINUTE, normality));
export const normalityOf = (unusual) => -MINUTE - (unusual / 100) * YEAR;
