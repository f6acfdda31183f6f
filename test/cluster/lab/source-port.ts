/** Below all that kernels choose themselves and above what questions name, as far as the lab goes. */
const [FIRST, LAST] = [23_000, 29_999];
let last = LAST;

/**
 * For questions over UDP and SCTP. Left to chance, a port comes again after some hundred questions, and the kernel may
 * still know its flow: whoever answered then answers now, whatever rules say. (A new TCP connection ends the old flow.)
 */
export function nextSourcePort(): number {
  last = last === LAST ? FIRST : last + 1;
  return last;
}
