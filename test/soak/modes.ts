import { useFlavour } from '../iptables/flavours.ts';

/** Modes of a run: those of the program, and iptables mode with the other flavour of iptables. */
export const soakModes = ['nftables', 'iptables', 'iptables-legacy', 'ipvs', 'userspace'] as const;
export type SoakMode = (typeof soakModes)[number];

/** Makes this process find the right flavour of iptables; returns the mode of the program. */
export function prepareMode(mode: SoakMode): string {
  if (mode === 'iptables') useFlavour('nft');
  if (mode !== 'iptables-legacy') return mode;
  useFlavour('legacy');
  return 'iptables';
}
