/** The mark of packets to masquerade, in the form rules have it: `0x00004000`. The bit is 0 to 31. */
export function markText(bit: number): string {
  // Not a shift: bit 31 would be the sign.
  return `0x${(2 ** bit).toString(16).padStart(8, '0')}`;
}
