/**
 * Loaded into the program before its own modules: adds the milliseconds in the file KPT_CLOCK_SHIFT to its wall clock,
 * and follows the file. The monotonic clock and timers stay as they are, as when somebody sets the machine's clock.
 */
import { readFileSync } from 'node:fs';

const file = process.env.KPT_CLOCK_SHIFT;
const lookMs = 50;
const RealDate = Date;
let shift = 0;

class ShiftedDate extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + shift);
    else super(...args);
  }

  static now() {
    return RealDate.now() + shift;
  }
}

function look() {
  try {
    shift = Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    // The file is gone: the run is over.
  }
}

if (file !== undefined) {
  look();
  setInterval(look, lookMs).unref();
  globalThis.Date = ShiftedDate;
}
