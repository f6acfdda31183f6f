/** Below the ports that kernels choose, and above the ports that tests name. */
const [FIRST, LAST] = [23_000, 29_999];
let last = LAST;

/**
 * Returns a source port for a new flow over UDP or SCTP. The kernel may choose a port again while conntrack still has
 * its old flow: then the old endpoint answers, the rules have no effect, and counters count no new flow. (A new TCP
 * connection ends the old flow.)
 */
export function nextSourcePort(): number {
  last = last === LAST ? FIRST : last + 1;
  return last;
}
