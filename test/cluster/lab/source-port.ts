/** Below all that kernels choose themselves and above what questions name, as far as the lab goes. */
const [FIRST, LAST] = [23_000, 29_999];
let last = LAST;

/**
 * Returns a source port for a new flow over UDP or SCTP. A port chosen by the kernel can come again while the kernel
 * still remembers its old flow: the old endpoint then answers, whatever the rules say, and counters count no new flow.
 * (A new TCP connection ends the old flow.)
 */
export function nextSourcePort(): number {
  last = last === LAST ? FIRST : last + 1;
  return last;
}
